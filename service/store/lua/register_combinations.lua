-- Number combinations of attribute values, once for all partitions.
--
-- KEYS 1 combinations  list  JSON, in the order of their numbers
-- ARGV 1 how many combinations the caller knows; 2 how many may be; 3 ... combinations to add, JSON
-- The caller folds values by what it knows; if others have registered since, it must fold again,
-- so nothing is added then. Number 0 is always there, and no combination stands twice.
-- Returns the combinations that the caller does not know yet, in order; or nil, and adds nothing, when
-- the list is not the one that the caller knows: it is shorter, or holds what the caller takes for new.
local known = tonumber(ARGV[1])
local length = redis.call('LLEN', KEYS[1])
if length < known then return false end
if length == known then
  for i = 3, #ARGV do
    if redis.call('LPOS', KEYS[1], ARGV[i]) then return false end
  end
  for i = 3, #ARGV do
    if length < tonumber(ARGV[2]) then length = redis.call('RPUSH', KEYS[1], ARGV[i]) end
  end
end
return redis.call('LRANGE', KEYS[1], known, -1)
