-- Remember how far the labels of a partition are applied, if Redis holds all that were.
--
-- KEYS 1 labels  hash  next_offset, batches (applied ever)
-- ARGV 1 next offset  2 batches that the caller knows of  3 next offset that the caller last knew of, '' if none
-- A model without labels here has no batches to lose: that its offset is gone says that those of others are.
-- Returns 'ok' or 'refused'.
if (redis.call('HGET', KEYS[1], 'batches') or '0') ~= ARGV[2] then return 'refused' end
if ARGV[3] ~= '' and tonumber(redis.call('HGET', KEYS[1], 'next_offset') or '-1') < tonumber(ARGV[3]) then return 'refused' end
redis.call('HSET', KEYS[1], 'next_offset', ARGV[1])
return 'ok'
