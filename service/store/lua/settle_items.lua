-- Ask nobody else about items that were labelled.
--
-- KEYS 1 fence  2 undecided (see apply_labels.lua)  then per item its labelled hash
-- ARGV 1 epoch  then per item the id of its first request, and how many changes of its labels were decided on
-- An item whose labels have changed since stays undecided.
-- Returns 'ok', or 'fenced'.
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])
for n = 3, #KEYS do
  local item, changes = ARGV[2 * n - 4], ARGV[2 * n - 3]
  if (redis.call('HGET', KEYS[n], 'changes') or '0') == changes then
    redis.call('ZREM', KEYS[2], item)
    redis.call('DEL', KEYS[n])
  end
end
return {'ok'}
