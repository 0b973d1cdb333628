-- Apply labels to their requests, each at most once.
--
-- KEYS 1 open  2 deadlines  3 outbox  4 outcomes (stream)  5 tallies
--      6 labels (hash of this partition: batches, applied ever); then per label its request's hash
-- ARGV 1 outcomes to keep, about  2 lifetime of a closed request (s)
--      then per label 7: request id, item id, kind, true class, digest of the label, time (s), annotator
--
-- States: open -> answered | skipped | expired; skipped -> answered by a correction;
--         answered -> answered by a correction, or retracted; retracted -> answered by a correction.
-- A label's digest is kept in `seen`, so the same label applied again changes nothing, whatever came
-- after it; behind the digest '+' if it changed something, '=' if it said nothing new, '-' if there was
-- nothing to retract. The last two are kept of corrections and retractions, which could change something
-- when they are applied again after a later label. An answer or a skip that changed nothing never will:
-- no request becomes open again.
-- The outcome stream gets an entry for every change of what is known of an item.
-- Returns per label 'applied', 'duplicate' or a reason to reject it; behind 'applied', if the label closed an
-- open request, a space and what is known of that request (JSON).
local MAX_SEEN = 32 * 18
redis.call('HINCRBY', KEYS[6], 'batches', 1)

local statuses = {}
for l = 1, #KEYS - 6 do
  local request, a = KEYS[6 + l], 3 + 7 * (l - 1)
  local id, item, kind, class, digest = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local stored = redis.call('HMGET', request, 'state', 'item', 'true_class', 'seen', 'attempt', 'assessment', 'fact',
    'grouping', 'group')
  local state, known, seen = stored[1], stored[3], stored[4] or ''
  local known_at = string.find(seen, digest, 1, true)
  local status, event

  if not state then
    status = 'unknown_request'
  elseif stored[2] ~= item then
    status = 'item_mismatch'
  elseif known_at then
    status = string.sub(seen, known_at + 16, known_at + 16) == '-' and 'nothing_to_retract' or 'duplicate'
  elseif state == 'expired' then
    status = 'expired_request'
  elseif state == 'open' and kind == 'answer' then
    event = 'answered'
  elseif state == 'open' and kind == 'skip' then
    event = 'skipped'
  elseif #seen >= MAX_SEEN then
    status = 'too_many_revisions'
  elseif kind == 'answer' then
    status = state == 'answered' and known == class and 'duplicate' or 'conflicting_label'
  elseif kind == 'skip' then
    status = state == 'skipped' and 'duplicate' or 'conflicting_label'
  elseif kind == 'correction' then
    if state == 'answered' and known == class then status = 'duplicate'
    elseif state == 'answered' then event = 'corrected'
    else event = 'answered' end
  elseif kind == 'retraction' then
    if state == 'answered' then event = 'retracted'
    elseif state == 'retracted' then status = 'duplicate'
    else status = 'nothing_to_retract' end
  end

  if event then
    status = 'applied'
    if state == 'open' then
      status = 'applied ' .. (redis.call('HGET', KEYS[1], id) or '')
      redis.call('HDEL', KEYS[1], id)
      redis.call('ZREM', KEYS[2], id)
      redis.call('HDEL', KEYS[3], id .. '/' .. stored[5])
      redis.call('HDEL', request, 'message')
      redis.call('EXPIRE', request, ARGV[2])
    end
    local now_in = event == 'corrected' and 'answered' or event
    redis.call('HSET', request, 'state', now_in, 'true_class', class, 'seen', seen .. digest .. '+ ')
    if event ~= 'skipped' then
      redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[1], '*', 'request', id, 'kind', event, 'assessment', stored[6],
        'grouping', stored[8], 'group', stored[9], 'fact', stored[7], 'true_class', class, 'time', ARGV[a + 5], 'annotator', ARGV[a + 6])
    end
    redis.call('HINCRBY', KEYS[5], event .. '|' .. stored[6], 1)
  elseif not known_at and (kind == 'correction' or kind == 'retraction') then
    local mark = status == 'duplicate' and '= ' or status == 'nothing_to_retract' and '- '
    if mark then redis.call('HSET', request, 'seen', seen .. digest .. mark) end
  end
  statuses[#statuses + 1] = status
end
return statuses
