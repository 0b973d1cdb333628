-- Keep a state that only the leader writes: the checkpoint of evidence, or counts of earlier times.
--
-- KEYS 1 fence     string  highest leader epoch that has written
--      2 evidence or counts  hash  digest: of the state; state: msgpack (see store/checkpoints.py, store/count_histories.py)
-- ARGV 1 epoch  2 digest  3 state
-- Returns 'kept' or 'fenced'.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return 'fenced' end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], 'digest', ARGV[2], 'state', ARGV[3])
return 'kept'
