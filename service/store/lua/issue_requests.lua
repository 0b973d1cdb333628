-- Draw items from the pool for one assessment: mark, budget, outbox, in one step.
--
-- KEYS 1 fence      string  highest leader epoch that has written
--      2 items      zset    item id, by when it was requested (s); the newest are remembered
--      3 open       hash    request id -> JSON
--      4 deadlines  zset    request id, by deadline (s)
--      5 outbox     hash    request id/attempt -> message
--      6 budget     hash    assessment|window -> labels used
--      7 tallies    hash    event|assessment -> how often
--      then per candidate: pool hash, drawn list, request hash
-- ARGV 1 epoch  2 budget field  3 budget limit  4 assessment  5 its grouping  6 now (s)  7 items to remember
--      then per candidate 10: slot, pool record, item hash, item id, request id, fact, message, open JSON,
--      deadline, group
-- Returns per candidate 'issued', 'gone' (the slot holds another item now), 'requested' (its item was
-- requested before; the slot is emptied) or 'budget'; or 'fenced' alone.
local epoch = tonumber(ARGV[1])
if epoch < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])

local used = tonumber(redis.call('HGET', KEYS[6], ARGV[2]) or '0')
local limit = tonumber(ARGV[3])
local statuses = {}
local candidates = (#KEYS - 7) / 3
for c = 0, candidates - 1 do
  local pool, drawn, request = KEYS[8 + 3 * c], KEYS[9 + 3 * c], KEYS[10 + 3 * c]
  local a = 8 + 10 * c
  local slot, record, hash, item, id = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local status
  if used >= limit then
    status = 'budget'
  elseif redis.call('HGET', pool, slot) ~= record then
    status = 'gone'
  else
    redis.call('HDEL', pool, slot)
    redis.call('RPUSH', drawn, slot .. ':' .. hash)
    if redis.call('HEXISTS', KEYS[3], id) == 1 or redis.call('ZADD', KEYS[2], 'NX', ARGV[6], item) == 0 then
      status = 'requested'
    else
      status = 'issued'
      -- Of an item that is forgotten by now a closed request may be left, which would end this one with it.
      redis.call('DEL', request)
      used = used + 1
      redis.call('HINCRBY', KEYS[6], ARGV[2], 1)
      redis.call('HINCRBY', KEYS[7], 'issued|' .. ARGV[4], 1)
      redis.call('HSET', request, 'state', 'open', 'attempt', '1', 'item', item, 'assessment', ARGV[4],
        'grouping', ARGV[5], 'group', ARGV[a + 9], 'window', ARGV[2], 'fact', ARGV[a + 5], 'message', ARGV[a + 6])
      redis.call('HSET', KEYS[3], id, ARGV[a + 7])
      redis.call('ZADD', KEYS[4], ARGV[a + 8], id)
      redis.call('HSET', KEYS[5], id .. '/1', ARGV[a + 6])
    end
  end
  statuses[#statuses + 1] = status
end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[7]))
return statuses
