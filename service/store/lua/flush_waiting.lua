-- Write back what has changed of one shard, and let its predictions wait for unrequested labels, in one step.
--
-- KEYS 1-9 those of flush_shard.lua
--     10 cohorts  hash  see joins.lua
--     11 waiting  hash  digest of an item -> its record (see joins.lua)
--        then per hour cohort list of its waiting items
-- ARGV those of flush_shard.lua
--      then items that may wait, about; hours, then per hour its number and the highest level by which the owner chose
--      its items (-1: none came, it is only to be thinned out); items, then per item its digest, which of these hours,
--      when it arrived (s) and its fact (msgpack)
-- Returns the level of the sample with the hours that are to be thinned out, then the reply of flush_shard.lua.
-- include joins
-- include flush_shard
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
end

local reply = flush_shard(add_waiting)
if not touched then open_joins(KEYS[10], KEYS[11], 0) end
table.insert(reply, 1, level .. hours_to_thin())
return reply
