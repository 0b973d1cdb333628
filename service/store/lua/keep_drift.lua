-- Keep which groups have drifted, and which times of event time the reference needs.
--
-- KEYS 1 fence  2 drift  hash  verdicts, pins (service/store/drift_facts.py)
-- ARGV 1 epoch  then of every field that is kept: its name, its value
-- Returns 'kept' or 'fenced'.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 'fenced' end
redis.call('SET', KEYS[1], ARGV[1])

for a = 2, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[a], ARGV[a + 1]) end
return 'kept'
