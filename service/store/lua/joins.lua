-- Predictions that wait for labels nobody requested: what flush.lua, join_labels.lua and advance_cohort.lua share.
-- They call open_joins first, and save_joins last.
--
-- cohorts  hash  hour of arrival (s / 3600) -> state, level, waiting items, those with a label, items to look at for
--                thinning, with spaces between; `level`, `closed` (items), `dropped` (cohorts ever),
--                `label:<result>` (labels ever; a batch that is read again counts again), `depths` (waiting items by the zero bits that their digest begins with),
--                `removed` (the highest hour whose closed items were removed)
-- waiting  hash  digest of an item (8 bytes) -> its record
-- cohort   list  digests of the waiting items of one hour
--
-- States of a cohort: o(pen) -> c(losing) -> d(one) -> r(eopened), if a late prediction comes -> c. An open one that
-- never counted may be dropped (x), for ever.
-- A record: state, hour (4), time of the label (8), its class (6), outcome (10), arrival (8; -1: a label carried the
-- prediction), length of the label (2), label, fact. Its state is w(aiting), c(losed), or l, a label whose prediction
-- has not come.
-- An item is in the sample of a cohort if its digest begins with as many zero bits as the cohort's level says: the
-- highest level while the cohort was open. So the sample is even, whatever its items are.
local NO_CLASS, RETRACTED, NO_ENTRY = string.rep('\0', 6), string.rep('\255', 6), string.rep('\0', 10)
local MOST_LEVEL, HEAD, BOUND, CARRIED_BOUND, CARRIED = 32, 39, 1.5, 1.25, -1
local cohorts_key, waiting_key, most_waiting
local level, closed, dropped, removed, depths, waiting, sampled, touched

local function open_joins(cohorts, items, most)
  cohorts_key, waiting_key, most_waiting = cohorts, items, tonumber(most)
  local stored = redis.call('HMGET', cohorts_key, 'level', 'closed', 'dropped', 'depths', 'removed')
  removed = tonumber(stored[5] or '-1')
  level, closed, dropped = tonumber(stored[1] or '0'), tonumber(stored[2] or '0'), tonumber(stored[3] or '0')
  depths, waiting, sampled, touched = {}, 0, 0, {}
  for count in string.gmatch(stored[4] or '', '%d+') do depths[#depths + 1] = tonumber(count) end
  for d = 0, MOST_LEVEL do
    depths[d + 1] = depths[d + 1] or 0
    waiting = waiting + depths[d + 1]
    if d >= level then sampled = sampled + depths[d + 1] end
  end
end

local function save_joins()
  local counts = table.concat(depths, ' ')
  redis.call(
    'HSET', cohorts_key, 'level', level, 'closed', closed, 'dropped', dropped, 'depths', counts, 'removed', removed
  )
  for hour, c in pairs(touched) do
    local field = string.format('%.0f', hour)
    if c.gone then
      redis.call('HDEL', cohorts_key, field)
    else
      local text = string.format('%s %d %d %d %d', c.state, c.level, c.items, c.labels, c.thin)
      redis.call('HSET', cohorts_key, field, text)
    end
  end
end

local function is_open(c) return c.state == 'o' or c.state == 'r' end

-- The cohort of an hour. As one begins, the level falls if there is much room.
local function cohort_of(hour)
  if touched[hour] then return touched[hour] end
  local stored = redis.call('HGET', cohorts_key, string.format('%.0f', hour))
  local state, of, items, labels, thin = string.match(stored or '', '^(%a) (%d+) (%d+) (%d+) (%d+)$')
  if not state then
    if level > 0 and 4 * waiting < most_waiting then
      level = level - 1
      sampled = sampled + depths[level + 1]
    end
    state, of, items, labels, thin = 'o', level, 0, 0, 0
  end
  touched[hour] = {
    hour = hour, state = state, level = tonumber(of),
    items = tonumber(items), labels = tonumber(labels), thin = tonumber(thin)
  }
  return touched[hour]
end

-- Raise the level of a cohort, unless it is being closed; what it has below is to be thinned out.
local function raise(c, to)
  if c.state ~= 'c' and c.level < to then c.level, c.thin = to, c.items end
end

-- Zero bits that a digest begins with.
local function depth_of(digest)
  local top, depth, half = struct.unpack('>I4', digest), 0, 2147483648
  while depth < MOST_LEVEL and top < half do depth, half = depth + 1, half / 2 end
  return depth
end

local function has_label(record) return record.class ~= NO_CLASS and record.class ~= RETRACTED end

local function record_of(digest)
  local text = redis.call('HGET', waiting_key, digest)
  if not text then return nil end
  local label = struct.unpack('>I2', text, 38)
  return {
    state = string.sub(text, 1, 1), hour = struct.unpack('>I4', text, 2), time = struct.unpack('>d', text, 6),
    class = string.sub(text, 14, 19), entry = string.sub(text, 20, 29), arrival = struct.unpack('>d', text, 30),
    label = string.sub(text, HEAD + 1, HEAD + label), fact = string.sub(text, HEAD + label + 1)
  }
end

local function store_record(digest, r)
  local head = r.state .. struct.pack('>I4d', r.hour, r.time) .. r.class .. r.entry
  redis.call('HSET', waiting_key, digest, head .. struct.pack('>dI2', r.arrival, #r.label) .. r.label .. r.fact)
end

-- The record of an item of a cohort, or nil if it does not wait there.
local function waiting_record(c, digest)
  local r = record_of(digest)
  return r and r.state == 'w' and r.hour == c.hour and r or nil
end

-- Count a waiting item of a cohort, or with -1 one that waits no longer.
local function count_item(c, digest, record, change)
  local depth = depth_of(digest)
  c.items = c.items + change
  if has_label(record) then c.labels = c.labels + change end
  depths[depth + 1], waiting = depths[depth + 1] + change, waiting + change
  if depth >= level then sampled = sampled + change end
end

-- Raise the level until the sample fits, of all cohorts that are open.
local function fit_sample()
  while sampled > most_waiting and level < MOST_LEVEL do
    sampled = sampled - depths[level + 1]
    level = level + 1
  end
  for _, field in ipairs(redis.call('HKEYS', cohorts_key)) do
    if tonumber(field) then cohort_of(tonumber(field)) end
  end
  for _, c in pairs(touched) do
    if is_open(c) then raise(c, level) end
  end
end

-- Let a prediction wait in the cohort of its hour, whose list is `list`; its record, or nil and why it has none.
-- Of several predictions of an item the newest one before its label counts, in the cohort of the first one. A prediction
-- whose outcome is in the stream stays. One of the topic replaces one that a label carried, whose `arrival` is CARRIED.
local function add_prediction(digest, hour, list, arrival, fact)
  local r = record_of(digest)
  if r and r.state == 'c' then return r end
  if r and r.state == 'w' then
    if arrival > r.arrival and (r.arrival == CARRIED or not (has_label(r) and arrival > r.time)) then
      r.arrival, r.fact = arrival, fact
      store_record(digest, r)
    end
    return r
  end
  local c = cohort_of(hour)
  if c.state == 'x' then return nil, 'dropped' end
  if depth_of(digest) < c.level then return nil, 'not_sampled' end
  if arrival == CARRIED then
    -- Whoever labels must not be able to drop the predictions of others.
    if waiting >= CARRIED_BOUND * most_waiting then return nil, 'dropped' end
  elseif waiting >= BOUND * most_waiting then
    if c.state == 'o' then c.state, dropped = 'x', dropped + 1 end
    return nil, 'dropped'
  end
  if c.state == 'd' then c.state = 'r' end
  -- A label from before what was removed belongs to an earlier prediction of its item.
  if r and r.time < 3600 * removed then r = nil end
  r = r or {time = -1, class = NO_CLASS, label = ''}
  r.state, r.hour, r.entry, r.arrival, r.fact = 'w', hour, NO_ENTRY, arrival, fact
  store_record(digest, r)
  redis.call('RPUSH', list, digest)
  count_item(c, digest, r, 1)
  if sampled > most_waiting then fit_sample() end
  return r
end

-- Take items that are not in the sample of a cohort any more out of it, as far as so many digests go.
local function thin_out(c, list, most)
  local count = math.min(c.thin, most)
  if count == 0 then return 0 end
  for _, digest in ipairs(redis.call('LPOP', list, count) or {}) do
    local r = waiting_record(c, digest)
    if r and depth_of(digest) >= c.level then
      redis.call('RPUSH', list, digest)
    elseif r then
      count_item(c, digest, r, -1)
      redis.call('HDEL', waiting_key, digest)
    end
  end
  c.thin = c.thin - count
  return count
end

-- Hours with items that are not in the sample any more, with a space before each; not all, if there are many.
local function hours_to_thin()
  if waiting == sampled then return '' end
  local found, text = 0, ''
  local stored = redis.call('HGETALL', cohorts_key)
  for i = 1, #stored, 2 do
    if found < 32 and string.match(stored[i + 1], '^[or] .* [1-9]%d*$') then found, text = found + 1, text .. ' ' .. stored[i] end
  end
  return text
end

-- Id of an entry of the stream in ten bytes, and back.
local function pack_entry(id)
  local milliseconds, sequence = string.match(id, '(%d+)-(%d+)')
  return struct.pack('>I6I4', tonumber(milliseconds), tonumber(sequence))
end

local function unpack_entry(entry)
  local milliseconds, sequence = struct.unpack('>I6I4', entry)
  return string.format('%.0f-%.0f', milliseconds, sequence)
end
