-- Write back what has changed of one shard, if its owner still is its owner; free what was drawn: what flush.lua and
-- flush_waiting.lua share. `add_more` writes more in the same step, by the arguments from where it is told.
--
-- KEYS 1 shard         hash    next_offset, flush_id, landmark (s), newest_record (s), newest_prediction (s),
--                             drawn_base, clipped
--      2 traffic       hash    pages of the tables (service/store/traffic_pages.py)
--      3 pool          hash    pool id, NUL, group -> sketch (service/domain/grouping_pool.py)
--      4 items         hash    item hash -> pool record
--      5 sums          hash    predicted class index -> packed float64
--      6 drawn         list    pool id, NUL, group, item hash of drawn items, oldest first
--      7 partitions    set     partitions that have a shard
--      8 marks         hash    mark -> counts by then (service/domain/traffic_marks.py)
--      9 drift         hash    pins: times whose marks are needed, as JSON
-- ARGV 1 next offset that the owner started from ('' for a new shard)
--      2 new next offset
--      3 id of the flush that the owner started from ('' where none is stored)
--      4 id of this flush
--      5 drawn entries that the owner has seen, counted since the shard began
--      6 partition
--      7 landmark ('' where it is as it was)
--      8 time of the newest record up to the new next offset ('' where no record has a time)
--      9 predictions whose time was clipped, ever, by direction, as JSON ('' where there are none)
--     10 arrival of the model's newest prediction ('' where there is none)
--     11 for traffic, pool, items, sums and marks in turn: n, then n pairs of field and value that have changed
--        for items, pool, traffic and marks in turn: n, then n fields that are to go
--        then what `add_more` reads
-- Returns {'ok', drawn entries trimmed so far, pins, drawn entries ...} or {'refused'}
local function flush_shard(add_more)
  local stored = redis.call('HMGET', KEYS[1], 'next_offset', 'flush_id', 'drawn_base')
  local next_offset, flush_id = stored[1] or '', stored[2] or ''
  local base, seen = tonumber(stored[3] or '0'), tonumber(ARGV[5])

  -- Entries leave the list by this script alone: one that the owner has seen and that is missing was lost.
  if seen > base + redis.call('LLEN', KEYS[6]) then return {'refused'} end

  local already_done = next_offset == ARGV[2] and flush_id == ARGV[4]
  if not already_done then
    -- The offset alone does not tell owners apart: where no prediction comes, flushes still take drawn items out.
    if next_offset ~= ARGV[1] or flush_id ~= ARGV[3] then return {'refused'} end
    local at = 11
    for _, key in ipairs({KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[8]}) do
      local last = at + 2 * tonumber(ARGV[at])
      for i = at + 1, last, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
      at = last + 1
    end
    for _, key in ipairs({KEYS[4], KEYS[3], KEYS[2], KEYS[8]}) do
      local last = at + tonumber(ARGV[at])
      for i = at + 1, last do redis.call('HDEL', key, ARGV[i]) end
      at = last + 1
    end
    if add_more then add_more(at) end

    redis.call('HSET', KEYS[1], 'next_offset', ARGV[2], 'flush_id', ARGV[4])
    if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'landmark', ARGV[7]) end
    if ARGV[8] ~= '' then redis.call('HSET', KEYS[1], 'newest_record', ARGV[8]) end
    if ARGV[9] ~= '' then redis.call('HSET', KEYS[1], 'clipped', ARGV[9]) end
    if ARGV[10] ~= '' then redis.call('HSET', KEYS[1], 'newest_prediction', ARGV[10]) end
    redis.call('SADD', KEYS[7], ARGV[6])
  end

  if seen > base then
    redis.call('LTRIM', KEYS[6], seen - base, -1)
    redis.call('HSET', KEYS[1], 'drawn_base', seen)
    base = seen
  end
  local reply = redis.call('LRANGE', KEYS[6], 0, -1)
  table.insert(reply, 1, redis.call('HGET', KEYS[9], 'pins') or '')
  table.insert(reply, 1, tostring(base))
  table.insert(reply, 1, 'ok')
  return reply
end
