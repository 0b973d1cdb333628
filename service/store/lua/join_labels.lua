-- Join labels that nobody requested with the predictions of their items.
--
-- KEYS 1 cohorts   hash    see joins.lua
--      2 waiting   hash    digest of an item -> its record (see joins.lua)
--      3 early     list    digests of items whose label came before their prediction, the oldest first
--      4 outcomes  stream
--      5 labels    hash    of this partition: batches, applied ever
--      then per label: cohort list of the hour of the prediction that it carries (`early`: it carries none)
-- ARGV 1 items that may wait, about  2 labels that may wait for their prediction  3 outcomes to keep, about
--      4 first hour that a prediction may be of  5 labels  6 batches that are complete with these labels
--      then per label 6: digest of its item, time (s), class (6 bytes; all bits set: retracted), label (msgpack), of
--      the prediction that it carries hour and fact ('' each: none)
-- Of an item's labels the one with the latest time counts, of equal times the one whose class is the greater number: so
-- their order, and labels that come twice, make no difference. Until its cohort closes a label only changes its record;
-- later it is a further entry, as of corrections (see apply_labels.lua), or the outcome if the item has none.
-- Returns how many labels whose prediction has not come went for others, then per label 'joined', 'early', 'revised',
-- 'unchanged', 'not_sampled', 'dropped' or 'too_late'.
-- include joins
open_joins(KEYS[1], KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[5], 'batches', ARGV[6])
local evicted = 0

-- Keep a label until its prediction comes, in place of the oldest one.
local function keep_early(digest)
  redis.call('RPUSH', KEYS[3], digest)
  if redis.call('LLEN', KEYS[3]) <= tonumber(ARGV[2]) then return end
  local oldest = redis.call('LPOP', KEYS[3])
  local r = record_of(oldest)
  if r and r.state == 'l' then
    redis.call('HDEL', KEYS[2], oldest)
    evicted = evicted + 1
  end
end

local function append(fact, label, of)
  local arguments = {'assessment', '', 'fact', fact, 'label', label}
  if of then arguments[7], arguments[8] = 'of', of end
  return pack_entry(redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[3], '*', unpack(arguments)))
end

-- Add what a label changes about an item whose cohort is closed to the stream.
local function revise(r, label)
  if r.entry == NO_ENTRY then
    if not has_label(r) then return 'unchanged' end
    r.entry, r.fact = append(r.fact, label), ''
    return 'revised'
  end
  local id = unpack_entry(r.entry)
  local found = redis.call('XRANGE', KEYS[4], id, id)[1]
  if not found then return 'too_late' end
  append(found[2][4], label, id)
  return 'revised'
end

local function join(digest, time, class, label, hour, list, fact)
  local r, status = record_of(digest), nil
  if hour and not (r and r.state ~= 'l') then
    -- Of the hours up to the one that was removed last nobody can know which items have counted.
    if hour < tonumber(ARGV[4]) or hour <= removed then return 'too_late' end
    r, status = add_prediction(digest, hour, list, CARRIED, fact)
    if not r then return status end
  end
  if not r then
    if depth_of(digest) < level then return 'not_sampled' end
    -- Its prediction was removed, if there was one: it must not join a later prediction of the item.
    if time < 3600 * math.max(tonumber(ARGV[4]), removed) then return 'too_late' end
    local alone = {state = 'l', hour = 0, time = time, class = class, entry = NO_ENTRY, arrival = 0, label = label, fact = ''}
    store_record(digest, alone)
    keep_early(digest)
    return 'early'
  end
  local before = struct.unpack('>I6', r.class)
  if time < r.time or time == r.time and struct.unpack('>I6', class) <= before then return 'unchanged' end
  local had, same = has_label(r), class == r.class
  r.time, r.class = time, class
  local gained = (has_label(r) and 1 or 0) - (had and 1 or 0)
  same = same or not had and not has_label(r)
  if r.state == 'c' then
    status = same and 'unchanged' or revise(r, label)
  else
    r.label = label
    status = r.state == 'l' and 'early' or same and 'unchanged' or 'joined'
    if r.state == 'w' then
      local c = cohort_of(r.hour)
      c.labels = c.labels + gained
    end
  end
  store_record(digest, r)
  return status
end

local statuses, count = {}, tonumber(ARGV[5])
for l = 1, count do
  local a = 6 * l + 1
  statuses[l] = join(
    ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4]), KEYS[5 + l], ARGV[a + 5]
  )
end
-- What is not in the sample any more goes twice as fast as predictions come.
local left = 2 * count + 100
for l = 1, count do
  local c = touched[tonumber(ARGV[6 * l + 5])]
  if c then left = left - thin_out(c, KEYS[5 + l], left) end
end
save_joins()
local results = {no_prediction = evicted}
for _, status in ipairs(statuses) do results[status] = (results[status] or 0) + 1 end
for status, number in pairs(results) do
  if number > 0 then redis.call('HINCRBY', KEYS[1], 'label:' .. status, number) end
end
table.insert(statuses, 1, evicted)
return statuses
