-- Close requests whose deadline has passed, or issue them once more.
--
-- KEYS 1 fence  2 open  3 deadlines  4 outbox  5 budget  6 tallies  7 claims (see claim_requests.lua)  8 barred
--      9 outcomes (stream)
--      then per request: its hash, asked hash (records: see store/request_registry.py), claimable set that it may be
--      in, and that it goes to (`open`: none)
-- ARGV 1 epoch  2 now (s)  3 how long an answer that is on its way is waited for (s)  4 outcomes to keep, about
--      5 requests
--      then per request 8: id, its field in the asked hash, attempt that expires, new deadline (s; '' to close it),
--      new message, new open JSON, new item digest ('': as it was), what is kept in place of a label (msgpack)
-- Whoever held a request holds it no more. An answer can be submitted until its lease ends, and never after the
-- deadline; so long after that one that was submitted is waited for.
-- A closed request gives its budget back, and what the reserve paid to the reserve, unless the window is long over:
-- nobody answered. It counts as closed since its deadline.
-- That an item was not labelled is its outcome (see apply_labels.lua). Of requests since whose issue their assessment got
-- no answer at all, only the first ones are noted: that says nothing of the items, and would push the labels out of the
-- stream.
-- Returns per request 'expired', 'reissued', 'changed' (answered meanwhile) or 'submitted' (its answer is on its
-- way); or 'fenced' alone.
local MOST_UNHEARD = 256
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])

-- Give a label back to the budget of its window, of which the field is gone if that is long over.
local function give_back(assessment, window, from_reserve)
  if redis.call('HEXISTS', KEYS[5], window) == 0 then return end
  redis.call('HINCRBY', KEYS[5], window, -1)
  local bucket = assessment .. '|bucket'
  local record = from_reserve and redis.call('HGET', KEYS[5], bucket)
  local number, used, rest = string.match(record or '', '^(%d+)|(%d+)(|.*)$')
  if number and assessment .. '|' .. number == window and tonumber(used) > 0 then
    redis.call('HSET', KEYS[5], bucket, string.format('%s|%d%s', number, tonumber(used) - 1, rest))
  end
end

-- Whether it is noted that a request of this time was not answered.
local function is_noted(assessment, issued)
  if tonumber(redis.call('HGET', KEYS[6], 'heard|' .. assessment) or '-1') >= issued then return true end
  return redis.call('HINCRBY', KEYS[6], 'unheard|' .. assessment, 1) <= MOST_UNHEARD
end

-- Append to the stream that an item was not labelled, and its further draws; the new entry's id, packed.
local function append(request, assessment, attempt, nothing)
  local kept = redis.call('HMGET', request, 'fact', 'shared', 'gold')
  local arguments = {'assessment', assessment, 'fact', kept[1], 'label', nothing}
  if attempt ~= '1' then arguments[7], arguments[8] = 'attempt', attempt end
  if kept[3] then
    arguments[#arguments + 1] = 'gold'
    arguments[#arguments + 1] = kept[3]
  end
  local id = redis.call('XADD', KEYS[9], 'MAXLEN', '~', ARGV[4], '*', unpack(arguments))
  for n = 1, tonumber(kept[2] or '0') do
    local other, fact = string.match(redis.call('HGET', request, 'shared:' .. n), '^(%Z+)%z(.*)$')
    redis.call('XADD', KEYS[9], 'MAXLEN', '~', ARGV[4], '*', 'assessment', other, 'fact', fact, 'of', id)
  end
  local milliseconds, sequence = string.match(id, '(%d+)-(%d+)')
  return struct.pack('>I6I4', tonumber(milliseconds), tonumber(sequence))
end

local statuses = {}
for r = 0, tonumber(ARGV[5]) - 1 do
  local k, a = 10 + 4 * r, 6 + 8 * r
  local request, asked, from, to = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local id, field, attempt, deadline = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local stored = redis.call('HMGET', request, 'attempt', 'assessment', 'window', 'reserve', 'item', 'gold')
  local record = redis.call('HGET', asked, field)
  local claim = redis.call('HGET', KEYS[7], id)
  local submitted_by = claim and string.match(claim, '^s (%S+) ')
  local status
  if not record or string.sub(record, 1, 1) ~= 'o' or stored[1] ~= attempt then
    status = 'changed'
  elseif submitted_by and tonumber(ARGV[2]) < tonumber(submitted_by) + tonumber(ARGV[3]) then
    status = 'submitted'
  else
    redis.call('HDEL', KEYS[4], id .. '/' .. attempt)
    if from ~= KEYS[2] then
      redis.call('ZREM', from, id)
      if claim then redis.call('HDEL', KEYS[7], id, '=' .. string.match(claim, '^%a %S+ (.*)$')) end
    end
    if deadline == '' then
      status = 'expired'
      local since = math.floor(tonumber(redis.call('ZSCORE', KEYS[3], id)))
      local entry = string.sub(record, 18, 27)
      if not stored[5] and is_noted(stored[2], struct.unpack('>I4', record, 2)) then
        entry = append(request, stored[2], attempt, ARGV[a + 7])
      end
      record = 'e' .. struct.pack('>I4', since) .. string.sub(record, 6, 17) .. entry .. string.sub(record, 28)
      redis.call('HSET', asked, field, record)
      redis.call('DEL', request)
      redis.call('HDEL', KEYS[2], id)
      redis.call('HDEL', KEYS[8], id)
      redis.call('ZREM', KEYS[3], id)
      give_back(stored[2], stored[3], stored[4])
    else
      status = 'reissued'
      local again = tostring(tonumber(attempt) + 1)
      if ARGV[a + 6] ~= '' then
        redis.call('HSET', asked, field, string.sub(record, 1, 5) .. ARGV[a + 6] .. string.sub(record, 10))
      end
      if to ~= KEYS[2] then redis.call('ZADD', to, redis.call('ZSCORE', KEYS[3], id), id) end
      redis.call('HSET', request, 'attempt', again, 'message', ARGV[a + 4])
      redis.call('HSET', KEYS[2], id, ARGV[a + 5])
      redis.call('ZADD', KEYS[3], deadline, id)
      redis.call('HSET', KEYS[4], id .. '/' .. again, ARGV[a + 4])
    end
    redis.call('HINCRBY', KEYS[6], (stored[6] and 'gold_' or '') .. status .. '|' .. stored[2], 1)
  end
  statuses[#statuses + 1] = status
end
return statuses
