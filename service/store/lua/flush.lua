-- Write one shard back, if its owner still is its owner; free what was drawn.
--
-- KEYS 1 shard         hash    next_offset, flush_id, landmark (s), counts, weights, score_sums, drawn_base
--      2 pool          hash    pool id, NUL, group -> sketch (service/pool.py)
--      3 items         hash    item hash -> pool record
--      4 sums          hash    predicted class index -> packed float64
--      5 drawn         list    pool id, NUL, group, item hash of drawn items, oldest first
--      6 partitions    set     partitions that have a shard
--      7 combinations  list    JSON, in the order of their numbers
-- ARGV 1 next offset that the owner started from ('' for a new shard)
--      2 new next offset
--      3 id of the flush that the owner started from ('' where none is stored)
--      4 id of this flush
--      5 drawn entries that the owner has seen, counted since the shard began
--      6 partition
--      7 landmark  8 counts  9 weights  10 score sums ('' each: unchanged)
--     11 n: combinations registered since the last flush; then n pairs of number, JSON
--        m: changed sketches; then m pairs of field, sketch
--        i: items that entered; then i pairs of hash, record
--        k: changed classes; then k pairs of index, packed sums
--        r: items that left; then r hashes
--        f: sketches of groupings that ask no more; then f fields
-- Returns {'ok' | 'refused', drawn entries trimmed so far, drawn entries ...}
local stored = redis.call('HMGET', KEYS[1], 'next_offset', 'flush_id', 'drawn_base')
local next_offset, flush_id = stored[1] or '', stored[2] or ''
local base, seen = tonumber(stored[3] or '0'), tonumber(ARGV[5])

-- Entries leave the list by this script alone: one that the owner has seen and that is missing was lost.
if seen > base + redis.call('LLEN', KEYS[5]) then return {'refused'} end

local already_done = next_offset == ARGV[2] and flush_id == ARGV[4]
if not already_done then
  -- The offset alone does not tell owners apart: where no prediction comes, flushes still take drawn items out.
  if next_offset ~= ARGV[1] or flush_id ~= ARGV[3] then return {'refused'} end
  local at = 11
  local function pairs_from_here()
    local count = tonumber(ARGV[at])
    local first = at + 1
    at = first + 2 * count
    return first, at - 1
  end

  local first, last = pairs_from_here()
  for i = first, last, 2 do
    if redis.call('LINDEX', KEYS[7], ARGV[i]) ~= ARGV[i + 1] then return {'refused'} end
  end
  for key = 2, 4 do
    first, last = pairs_from_here()
    for i = first, last, 2 do redis.call('HSET', KEYS[key], ARGV[i], ARGV[i + 1]) end
  end
  for _, key in ipairs({KEYS[3], KEYS[2]}) do
    local count = tonumber(ARGV[at])
    for i = at + 1, at + count do redis.call('HDEL', key, ARGV[i]) end
    at = at + 1 + count
  end

  redis.call('HSET', KEYS[1], 'next_offset', ARGV[2], 'flush_id', ARGV[4])
  if ARGV[7] ~= '' then
    redis.call('HSET', KEYS[1], 'landmark', ARGV[7], 'counts', ARGV[8], 'weights', ARGV[9], 'score_sums', ARGV[10])
  end
  redis.call('SADD', KEYS[6], ARGV[6])
end

if seen > base then
  redis.call('LTRIM', KEYS[5], seen - base, -1)
  redis.call('HSET', KEYS[1], 'drawn_base', seen)
  base = seen
end
local reply = redis.call('LRANGE', KEYS[5], 0, -1)
table.insert(reply, 1, tostring(base))
table.insert(reply, 1, 'ok')
return reply
