-- Give the leader's lease back, if it is ours.
--
-- KEYS 1 lease  string  holder|epoch
-- ARGV 1 holder
-- Returns 1 when it was ours.
local current = redis.call('GET', KEYS[1])
if current and string.match(current, '^(.*)|%d+$') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
