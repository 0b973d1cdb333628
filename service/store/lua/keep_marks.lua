-- Keep marks of traffic and verdicts of drift, and let other marks go.
--
-- KEYS 1 fence  2 marks  hash  what a mark is for and when it was made -> traffic by then; verdicts: groups that
--                       have drifted (see store/traffic_checkpoints.py)
-- ARGV 1 epoch  2 how many marks go  3... their names
--      then of every field that is kept: its name, its value
-- Returns 'kept' or 'fenced'.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 'fenced' end
redis.call('SET', KEYS[1], ARGV[1])

local going = tonumber(ARGV[2])
for a = 3, 2 + going do redis.call('HDEL', KEYS[2], ARGV[a]) end
for a = 3 + going, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[a], ARGV[a + 1]) end
return 'kept'
