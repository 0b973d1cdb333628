-- Record that the data which had one id is lost, once for every id; give what is there another id where it has the
-- same or none.
--
-- KEYS 1 identity  hash  id, since (s), after:<lost id> (s), and marks of partitions, which stay
--      2 reset     hash  since (s), kind, store (the lost id), labels_before, labels_now, records:<topic>/<p>; until an
--                        operator acknowledges it
-- ARGV 1 lost id  2 fresh id  3 now (s)  4 kind  5 labels before ('' where unknown)  6 labels now ('' where unknown)
--      then per partition 2: <topic>/<p>, records of it that were processed before
-- What consumers of several partitions know of one loss is put together: the most labels and records before it.
-- Returns {'recorded' | 'known', the id of what is there now}.
local id = redis.call('HGET', KEYS[1], 'id')
if not id or id == ARGV[1] then
  id = ARGV[2]
  redis.call('HSET', KEYS[1], 'id', id, 'since', ARGV[3])
end

local status = 'known'
if redis.call('HSETNX', KEYS[1], 'after:' .. ARGV[1], ARGV[3]) == 1 then
  status = 'recorded'
  if redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('HSET', KEYS[2], 'since', ARGV[3], 'kind', ARGV[4], 'store', ARGV[1])
  end
elseif redis.call('EXISTS', KEYS[2]) == 0 then
  return {status, id}
end

local function keep_highest(field, value)
  if value ~= '' and tonumber(value) > tonumber(redis.call('HGET', KEYS[2], field) or '-1') then
    redis.call('HSET', KEYS[2], field, value)
  end
end
keep_highest('labels_before', ARGV[5])
for a = 7, #ARGV, 2 do keep_highest('records:' .. ARGV[a], ARGV[a + 1]) end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[2], 'labels_now', ARGV[6]) end
return {status, id}
