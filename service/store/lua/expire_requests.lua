-- Close requests whose deadline has passed, or issue them once more.
--
-- KEYS 1 fence  2 open  3 deadlines  4 outbox  5 budget  6 tallies  7 claims (see claim_requests.lua)
--      then per request: its hash, asked hash (records: see store/request_registry.py)
--      then claimable sets of vendors
-- ARGV 1 epoch  2 now (s)  3 how long an answer that is on its way is waited for (s)  4 requests
--      then per request 9: id, its field in the asked hash, attempt that expires, new deadline (s; '' to close it),
--      new message, new open JSON, new item digest ('': as it was), which of KEYS is the claimable set that it may be
--      in, which one is that it goes to (0: none)
-- Whoever held a request holds it no more. An answer can be submitted until its lease ends, and never after the
-- deadline; so long after that one that was submitted is waited for.
-- A closed request gives its budget back, unless the window is long over: nobody answered. It counts as closed since its deadline.
-- Returns per request 'expired', 'reissued', 'changed' (answered meanwhile) or 'submitted' (its answer is on its
-- way); or 'fenced' alone.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])

local statuses = {}
for r = 0, tonumber(ARGV[4]) - 1 do
  local request, asked, a = KEYS[8 + 2 * r], KEYS[9 + 2 * r], 5 + 9 * r
  local id, field, attempt, deadline = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local stored = redis.call('HMGET', request, 'attempt', 'assessment', 'window')
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
    local from, to = tonumber(ARGV[a + 7]), tonumber(ARGV[a + 8])
    if from > 0 then
      redis.call('ZREM', KEYS[from], id)
      if claim then redis.call('HDEL', KEYS[7], id, '=' .. string.match(claim, '^%a %S+ (.*)$')) end
    end
    if deadline == '' then
      status = 'expired'
      local since = math.floor(tonumber(redis.call('ZSCORE', KEYS[3], id)))
      redis.call('HSET', asked, field, 'e' .. struct.pack('>I4', since) .. string.sub(record, 6))
      redis.call('DEL', request)
      redis.call('HDEL', KEYS[2], id)
      redis.call('ZREM', KEYS[3], id)
      -- Of a window that is long over the field is gone.
      if redis.call('HEXISTS', KEYS[5], stored[3]) == 1 then redis.call('HINCRBY', KEYS[5], stored[3], -1) end
    else
      status = 'reissued'
      local again = tostring(tonumber(attempt) + 1)
      if ARGV[a + 6] ~= '' then
        redis.call('HSET', asked, field, string.sub(record, 1, 5) .. ARGV[a + 6] .. string.sub(record, 10))
      end
      if to > 0 then redis.call('ZADD', KEYS[to], redis.call('ZSCORE', KEYS[3], id), id) end
      redis.call('HSET', request, 'attempt', again, 'message', ARGV[a + 4])
      redis.call('HSET', KEYS[2], id, ARGV[a + 5])
      redis.call('ZADD', KEYS[3], deadline, id)
      redis.call('HSET', KEYS[4], id .. '/' .. again, ARGV[a + 4])
    end
    redis.call('HINCRBY', KEYS[6], status .. '|' .. stored[2], 1)
  end
  statuses[#statuses + 1] = status
end
return statuses
