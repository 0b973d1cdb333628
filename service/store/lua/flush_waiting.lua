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
-- Let predictions wait for labels, by the arguments from `at` on. What is not in the sample any more goes twice as fast:
-- so many items are looked at, before that and after it, in all hours together.
local function add_waiting(at)
  open_joins(KEYS[10], KEYS[11], ARGV[at])
  local hours, count, first = {}, tonumber(ARGV[at + 1]), at + 2
  local items = first + 2 * count
  local added = tonumber(ARGV[items])
  local left = 2 * added + 100
  for h = 1, count do
    local hour, chosen_by = tonumber(ARGV[first + 2 * h - 2]), tonumber(ARGV[first + 2 * h - 1])
    -- Of an hour that was removed nobody can know which items have counted.
    if redis.call('HEXISTS', KEYS[10], hour) == 1 or chosen_by >= 0 and hour > removed then
      hours[h] = hour
      raise(cohort_of(hour), chosen_by)
      left = left - thin_out(cohort_of(hour), KEYS[11 + h], left)
    end
  end
  for i = items + 1, items + 4 * added, 4 do
    local h = tonumber(ARGV[i + 1])
    if hours[h] then add_prediction(ARGV[i], hours[h], KEYS[11 + h], tonumber(ARGV[i + 2]), ARGV[i + 3]) end
  end
  for h, hour in pairs(hours) do left = left - thin_out(cohort_of(hour), KEYS[11 + h], left) end
  save_joins()
end

local reply = flush_shard(add_waiting)
if not touched then open_joins(KEYS[10], KEYS[11], 0) end
table.insert(reply, 1, level .. hours_to_thin())
return reply
