-- Close requests whose deadline has passed, or issue them once more.
--
-- KEYS 1 fence  2 open  3 deadlines  4 outbox  5 budget  6 tallies; then per request its hash
-- ARGV 1 epoch  2 lifetime of a closed request (s)
--      then per request 5: id, attempt that expires, new deadline (s; '' to close it), new message, new open JSON
-- A closed request gives its budget back: nobody answered.
-- Returns per request 'expired', 'reissued' or 'changed' (answered meanwhile); or 'fenced' alone.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])

local statuses = {}
for r = 1, #KEYS - 6 do
  local request, a = KEYS[6 + r], 3 + 5 * (r - 1)
  local id, attempt, deadline = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local stored = redis.call('HMGET', request, 'state', 'attempt', 'assessment', 'window')
  local status
  if stored[1] ~= 'open' or stored[2] ~= attempt then
    status = 'changed'
  else
    redis.call('HDEL', KEYS[4], id .. '/' .. attempt)
    if deadline == '' then
      status = 'expired'
      redis.call('HSET', request, 'state', 'expired')
      redis.call('HDEL', request, 'message')
      redis.call('EXPIRE', request, ARGV[2])
      redis.call('HDEL', KEYS[2], id)
      redis.call('ZREM', KEYS[3], id)
      redis.call('HINCRBY', KEYS[5], stored[4], -1)
    else
      status = 'reissued'
      local again = tostring(tonumber(attempt) + 1)
      redis.call('HSET', request, 'attempt', again, 'message', ARGV[a + 3])
      redis.call('HSET', KEYS[2], id, ARGV[a + 4])
      redis.call('ZADD', KEYS[3], deadline, id)
      redis.call('HSET', KEYS[4], id .. '/' .. again, ARGV[a + 3])
    end
    redis.call('HINCRBY', KEYS[6], status .. '|' .. stored[3], 1)
  end
  statuses[#statuses + 1] = status
end
return statuses
