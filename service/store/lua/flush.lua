-- Write back what has changed of one shard, if its owner still is its owner; free what was drawn.
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
--      of a model with unrequested labels also
--     10 cohorts       hash    see joins.lua
--     11 waiting       hash    digest of an item -> its record (see joins.lua)
--        then per hour cohort list of its waiting items
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
--        of a model with unrequested labels: items that may wait, about; hours, then per hour its number and the highest
--        level by which the owner chose its items (-1: none came, it is only to be thinned out); items, then per item
--        its digest, which of these hours, when it arrived (s) and its fact (msgpack)
-- Returns {'ok', drawn entries trimmed so far, pins, level of the sample of waiting items and hours to thin out, drawn
-- entries ...} or {'refused'}
-- include joins
-- Let predictions wait for labels, by the arguments from `at` on. What is not in the sample any more goes twice as fast.
local function add_waiting(at)
  open_joins(KEYS[10], KEYS[11], ARGV[at])
  local hours, count, first = {}, tonumber(ARGV[at + 1]), at + 2
  local items = first + 2 * count
  local added = tonumber(ARGV[items])
  for h = 1, count do
    local hour, chosen_by = tonumber(ARGV[first + 2 * h - 2]), tonumber(ARGV[first + 2 * h - 1])
    if chosen_by >= 0 or redis.call('HEXISTS', KEYS[10], hour) == 1 then
      hours[h] = hour
      raise(cohort_of(hour), chosen_by)
      thin_out(cohort_of(hour), KEYS[11 + h], 2 * added + 100)
    end
  end
  for i = items + 1, items + 4 * added, 4 do
    local h = tonumber(ARGV[i + 1])
    add_prediction(ARGV[i], hours[h], KEYS[11 + h], tonumber(ARGV[i + 2]), ARGV[i + 3])
  end
  for h, hour in pairs(hours) do thin_out(cohort_of(hour), KEYS[11 + h], 2 * added + 100) end
  save_joins()
  return level .. hours_to_thin()
end

local stored = redis.call('HMGET', KEYS[1], 'next_offset', 'flush_id', 'drawn_base')
local next_offset, flush_id = stored[1] or '', stored[2] or ''
local base, seen = tonumber(stored[3] or '0'), tonumber(ARGV[5])

-- Entries leave the list by this script alone: one that the owner has seen and that is missing was lost.
if seen > base + redis.call('LLEN', KEYS[6]) then return {'refused'} end

local joins = KEYS[10] and redis.call('HGET', KEYS[10], 'level') or '0'
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
  if KEYS[10] then joins = add_waiting(at) end

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
table.insert(reply, 1, joins)
table.insert(reply, 1, redis.call('HGET', KEYS[9], 'pins') or '')
table.insert(reply, 1, tostring(base))
table.insert(reply, 1, 'ok')
return reply
