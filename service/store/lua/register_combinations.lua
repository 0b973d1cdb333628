-- Number combinations of attribute values, once for all partitions.
--
-- KEYS 1 combinations  list  JSON, in the order of their numbers
-- ARGV 1 how many combinations the caller knows; 2 how many may be; 3 ... combinations to add, JSON
-- The caller folds values by what it knows; if others have registered since, it must fold again,
-- so nothing is added then. Number 0 is always there.
-- Returns the combinations that the caller does not know yet, in order.
local known = tonumber(ARGV[1])
local length = redis.call('LLEN', KEYS[1])
if length <= known then
  for i = 3, #ARGV do
    if length < tonumber(ARGV[2]) then length = redis.call('RPUSH', KEYS[1], ARGV[i]) end
  end
end
return redis.call('LRANGE', KEYS[1], known, -1)
