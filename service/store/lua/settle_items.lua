-- Ask nobody else about items that were labelled.
--
-- KEYS 1 fence  2 undecided (see apply_labels.lua)  then per item its labelled hash
-- ARGV 1 epoch  then per item the id of its first request
-- Returns 'ok', or 'fenced'.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])
for n = 2, #ARGV do
  redis.call('ZREM', KEYS[2], ARGV[n])
  redis.call('DEL', KEYS[n + 1])
end
return {'ok'}
