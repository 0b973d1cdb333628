-- Take the leader's lease if it is free, renew it if it is ours.
--
-- KEYS 1 lease  string  holder|epoch, expires by itself
--      2 epoch  string  last epoch given
--      3 since  string  when the lease was taken (s)
-- ARGV 1 holder  2 lease (ms)  3 now (s)
-- Returns our epoch, or 0 when another holds the lease.
local current = redis.call('GET', KEYS[1])
if not current then
  local epoch = redis.call('INCR', KEYS[2])
  redis.call('SET', KEYS[1], ARGV[1] .. '|' .. epoch, 'PX', ARGV[2])
  redis.call('SET', KEYS[3], ARGV[3])
  return epoch
end
local holder, epoch = string.match(current, '^(.*)|(%d+)$')
if holder ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return tonumber(epoch)
