-- Give a vendor requests to answer, for the length of a lease.
--
-- KEYS 1 claimable  zset  request id, by when the vendor may claim it (s); inf while its answer is on its way
--      2 claims     hash  request id -> state (c: claimed, s: submitted), end of the lease (s), claim id; with spaces
--                         =claim id -> request id
--      3 deadlines  zset  request id, by deadline (s)
--      4 barred     hash  request id -> digests of those who have labelled its item, 8 bytes each
-- ARGV 1 now (s)  2 when the leases end (s), if deadlines are not sooner
--      3 claimable requests to choose from  4 digest of who is to answer ('' if it is not known)
--      5 ... claim ids, one per request that is wanted
-- If one of the claim ids is known, this is a call made again: nothing is claimed, and what is held is returned.
-- Returns request id and claim record by turns.
local now = tonumber(ARGV[1])
local claimed = {}

local known = false
for a = 5, #ARGV do
  local id = redis.call('HGET', KEYS[2], '=' .. ARGV[a])
  if id then
    known = true
    local record = redis.call('HGET', KEYS[2], id)
    local until_then = tonumber(string.match(record, '^%a (%S+) '))
    -- Held by this vendor, and not by a lease that has ended.
    if redis.call('ZSCORE', KEYS[1], id) and (until_then > now or string.sub(record, 1, 1) == 's') then
      claimed[#claimed + 1] = id
      claimed[#claimed + 1] = record
    end
  end
end
if known then return claimed end

-- Whether who is to answer has labelled the item of a request before.
local function is_barred(id)
  local people = ARGV[4] ~= '' and redis.call('HGET', KEYS[4], id) or ''
  for p = 1, #people, 8 do
    if string.sub(people, p, p + 7) == ARGV[4] then return true end
  end
  return false
end

local free = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
  local deadline = redis.call('ZSCORE', KEYS[3], id)
  if deadline and tonumber(deadline) > now and not is_barred(id) then free[#free + 1] = {tonumber(deadline), id, deadline} end
end
table.sort(free, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
for n = 1, math.min(#free, #ARGV - 4) do
  local deadline, id, claim = free[n][1], free[n][2], ARGV[4 + n]
  local ends = tonumber(ARGV[2]) < deadline and ARGV[2] or free[n][3]
  local before = redis.call('HGET', KEYS[2], id)
  if before then redis.call('HDEL', KEYS[2], '=' .. string.match(before, '^%a %S+ (.*)$')) end
  local record = 'c ' .. ends .. ' ' .. claim
  redis.call('HSET', KEYS[2], id, record, '=' .. claim, id)
  redis.call('ZADD', KEYS[1], ends, id)
  claimed[#claimed + 1] = id
  claimed[#claimed + 1] = record
end
return claimed
