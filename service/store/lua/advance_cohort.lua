-- Bring one cohort of predictions that wait for labels a step on: thin it out, close it, or remove it.
--
-- KEYS 1 fence     string  highest leader epoch that has written
--      2 cohorts   hash    see joins.lua
--      3 waiting   hash    digest of an item -> its record (see joins.lua)
--      4 outcomes  stream
--      5 cohort    list    digests of its waiting items
--      6 closed    list    digests of its items whose outcome is in the stream, or that have none
-- ARGV 1 epoch  2 items that may wait, about  3 hour of the cohort  4 'thin', 'close', 'empty' or 'remove'
--      5 digests to look at, at most  6 outcomes to keep, about
--      7 label of items that have none (msgpack; '': they leave no outcome)
-- Closing moves items from one list to the other and adds their outcomes, in the order of their arrival: each item is in
-- one list, so it has one outcome, whoever goes on when. Until then it waits, and a label may join it.
-- Removing also takes the cohort's counts away; `empty` keeps them, that a dropped cohort does not begin again.
-- Returns how many digests were looked at, fewer than asked for once the step is done, and how many outcomes were added;
-- or {'fenced'}.
-- include joins
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])
open_joins(KEYS[2], KEYS[3], ARGV[2])
local hour, step, most = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local c, added = cohort_of(hour), 0

-- Close one item.
local function close(digest, r)
  if depth_of(digest) < c.level then
    redis.call('HDEL', KEYS[3], digest)
    return
  end
  local label = has_label(r) and r.label or ARGV[7]
  if label ~= '' then
    local id = redis.call(
      'XADD', KEYS[4], 'MAXLEN', '~', ARGV[6], '*', 'assessment', '', 'fact', r.fact, 'label', label
    )
    r.entry, r.fact, added = pack_entry(id), '', added + 1
  end
  r.state, r.label, closed = 'c', '', closed + 1
  store_record(digest, r)
  redis.call('RPUSH', KEYS[6], digest)
end

local count = 0
-- What was dropped since its leader has looked is not closed.
if step == 'close' and c.state == 'x' then return {0, 0} end
-- A late prediction may have opened a cohort again that its leader has seen closed.
if (step == 'empty' or step == 'remove') and c.state ~= 'd' and c.state ~= 'x' then return {0, 0} end
if step == 'remove' then removed = math.max(removed, hour) end
if step == 'thin' then
  count = thin_out(c, KEYS[5], most)
else
  if step == 'close' then c.state = 'c' end
  for _, digest in ipairs(redis.call('LPOP', KEYS[5], most) or {}) do
    local r = waiting_record(c, digest)
    count = count + 1
    if r then
      count_item(c, digest, r, -1)
      if step == 'close' then close(digest, r) else redis.call('HDEL', KEYS[3], digest) end
    end
  end
  if step == 'close' then
    if count < most then c.state, c.items, c.labels, c.thin = 'd', 0, 0, 0 end
  elseif count < most then
    for _, digest in ipairs(redis.call('LPOP', KEYS[6], most - count) or {}) do
      local r = record_of(digest)
      count = count + 1
      closed = closed - 1
      if r and r.state == 'c' and r.hour == hour then redis.call('HDEL', KEYS[3], digest) end
    end
    c.gone = step == 'remove' and count < most
  end
end
save_joins()
return {count, added}
