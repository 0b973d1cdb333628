-- Apply labels to their requests, each at most once.
--
-- KEYS 1 open  2 deadlines  3 outbox  4 outcomes (stream)  5 tallies
--      6 labels (hash of this partition: batches, applied ever)  7 claims (see claim_requests.lua)
--      then per label: request hash, asked hash (records: see store/request_registry.py), claimable set of its
--      vendor (`open`: none)
-- ARGV 1 outcomes to keep, about  2 how long a label may be corrected (s)  3 now (s)  4 labels
--      then per label 8: request id, its field in the asked hash, digest of item and vendor, digest of a request that
--      was asked of no vendor ('' where that makes no difference), kind, class digest, digest of the label,
--      label (msgpack)
--
-- States: open -> answered | skipped | expired; skipped -> answered by a correction;
--         answered -> answered by a correction, or retracted; retracted -> answered by a correction.
-- A label's digest is kept in the record, so the same label applied again changes nothing, whatever came
-- after it; behind the digest '+' if it changed something, '=' if it said nothing new, '!' if it contradicted, '-' if
-- there was nothing to retract. The last three are kept so that a batch which is applied again, after later labels,
-- gives the same replies. Answers and skips that change nothing leave room for labels that revise.
-- The outcome stream gets an entry for every change of what is known of an item. The first one of an item is its
-- outcome. A later one repeats it with the new label, and names in `of` the one it revises; once the stream
-- has trimmed the outcome there is nothing to revise, and the request is unknown. An entry with `of` and without
-- a label is a further draw of the item, for another grouping or of another prediction (issue_requests.lua).
-- Returns per label 'applied', 'duplicate' or a reason to reject it; behind 'applied', if the label closed an
-- open request, a space and what is known of that request (JSON).
local HEAD, SEEN, MOST_SEEN, MOST_REPEATED = 27, 9, 32, 16
local VAIN = {['-'] = 'nothing_to_retract', ['!'] = 'conflicting_label'}
local now = math.floor(tonumber(ARGV[3]))
local uncorrectable = now - tonumber(ARGV[2])
redis.call('HINCRBY', KEYS[6], 'batches', 1)

-- What became of a label before: its mark, or nil.
local function mark_of(seen, digest)
  for p = 1, #seen, SEEN do
    if string.sub(seen, p, p + SEEN - 2) == digest then return string.sub(seen, p + SEEN - 1, p + SEEN - 1) end
  end
end

-- Assessment and fact of an answered request; nil when the stream has trimmed its outcome.
local function outcome_of(entry)
  local milliseconds, sequence = struct.unpack('>I6I4', entry)
  local id = string.format('%.0f-%.0f', milliseconds, sequence)
  local found = redis.call('XRANGE', KEYS[4], id, id)[1]
  if found then return found[2][2], found[2][4], id end
end

-- Append to the stream; the new entry's id, packed.
local function append(assessment, fact, label, of)
  local arguments = {'assessment', assessment, 'fact', fact, 'label', label}
  if of then
    arguments[7], arguments[8] = 'of', of
  end
  local id = redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[1], '*', unpack(arguments))
  local milliseconds, sequence = string.match(id, '(%d+)-(%d+)')
  return struct.pack('>I6I4', tonumber(milliseconds), tonumber(sequence))
end

-- Append the further draws of an item that was open, behind its outcome.
local function append_shared(request, entry)
  local milliseconds, sequence = struct.unpack('>I6I4', entry)
  local of = string.format('%.0f-%.0f', milliseconds, sequence)
  for n = 1, tonumber(redis.call('HGET', request, 'shared') or '0') do
    local assessment, fact = string.match(redis.call('HGET', request, 'shared:' .. n), '^(%Z+)%z(.*)$')
    redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[1], '*', 'assessment', assessment, 'fact', fact, 'of', of)
  end
end

local statuses = {}
for l = 0, tonumber(ARGV[4]) - 1 do
  local request, asked, claimable, a = KEYS[8 + 3 * l], KEYS[9 + 3 * l], KEYS[10 + 3 * l], 5 + 8 * l
  local id, field, item, kind = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
  local class, digest, label = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  local record = redis.call('HGET', asked, field)
  local state, since, about, known, entry, seen, mark, status, event
  if record then
    about = string.sub(record, 6, 9)
    state, since = string.sub(record, 1, 1), struct.unpack('>I4', record, 2)
    known, entry, seen = string.sub(record, 10, 17), string.sub(record, 18, HEAD), string.sub(record, HEAD + 1)
    mark = mark_of(seen, digest)
  end

  if not record or state ~= 'o' and since < uncorrectable then
    status = 'unknown_request'
  elseif about ~= item and about ~= ARGV[a + 3] then
    status = 'item_mismatch'
  elseif mark then
    status = VAIN[mark] or 'duplicate'
  elseif state == 'e' then
    status = 'expired_request'
  elseif state == 'o' and kind == 'answer' then
    event = 'answered'
  elseif state == 'o' and kind == 'skip' then
    event = 'skipped'
  elseif kind == 'answer' and state == 'a' and known == class or kind == 'skip' and state == 's' then
    status = 'duplicate'
  elseif #seen >= SEEN * MOST_SEEN then
    status = 'too_many_revisions'
  elseif kind == 'answer' or kind == 'skip' then
    status = 'conflicting_label'
  elseif kind == 'correction' then
    if state == 'a' and known == class then status = 'duplicate'
    elseif state == 'a' then event = 'corrected'
    else event = 'answered' end
  elseif kind == 'retraction' then
    if state == 'a' then event = 'retracted'
    elseif state == 'r' then status = 'duplicate'
    else status = 'nothing_to_retract' end
  end

  local assessment, fact, of
  if event then
    if state == 'a' or state == 'r' then
      assessment, fact, of = outcome_of(entry)
    else
      assessment, fact = unpack(redis.call('HMGET', request, 'assessment', 'fact'))
    end
    if not fact then event, status = nil, 'unknown_request' end
  end

  if event then
    status = 'applied'
    if state == 'o' then
      status = 'applied ' .. (redis.call('HGET', KEYS[1], id) or '')
      since = now
      redis.call('HDEL', KEYS[1], id)
      redis.call('ZREM', KEYS[2], id)
      redis.call('HDEL', KEYS[3], id .. '/' .. redis.call('HGET', request, 'attempt'))
      if claimable ~= KEYS[1] then
        redis.call('ZREM', claimable, id)
        local claim = redis.call('HGET', KEYS[7], id)
        if claim then redis.call('HDEL', KEYS[7], id, '=' .. string.match(claim, '^%a %S+ (.*)$')) end
      end
    end
    if event == 'skipped' then
      -- A correction may still make it an outcome.
      redis.call('HDEL', request, 'attempt', 'window', 'reserve', 'message')
      redis.call('EXPIRE', request, ARGV[2])
    else
      local appended = append(assessment, fact, label, of)
      if not of then
        entry = appended
        append_shared(request, entry)
      end
      redis.call('DEL', request)
    end
    local now_in = event == 'skipped' and 's' or event == 'retracted' and 'r' or 'a'
    redis.call('HSET', asked, field, now_in .. struct.pack('>I4', since) .. item .. class .. entry .. seen .. digest .. '+')
    redis.call('HINCRBY', KEYS[5], event .. '|' .. assessment, 1)
  elseif not mark then
    local vain = status == 'duplicate' and '=' or status == 'nothing_to_retract' and '-'
      or status == 'conflicting_label' and '!'
    local revises = kind == 'correction' or kind == 'retraction'
    if vain and #seen < SEEN * (revises and MOST_SEEN or MOST_REPEATED) then
      redis.call('HSET', asked, field, record .. digest .. vain)
    end
  end
  statuses[#statuses + 1] = status
end
return statuses
