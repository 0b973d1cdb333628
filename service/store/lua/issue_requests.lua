-- Draw items from the pool for one assessment: mark, budget, outbox, in one step.
--
-- KEYS 1 fence      string  highest leader epoch that has written
--      2 open       hash    request id -> JSON
--      3 deadlines  zset    request id, by deadline (s)
--      4 outbox     hash    request id/attempt -> message
--      5 budget     hash    assessment|window -> labels used; the first request of a window removes older ones
--      6 tallies    hash    event|assessment -> how often
--      7 outcomes   stream  labels; read alone
--      then per candidate: pool hash, drawn list, request hash, asked hash (records: see store/asked.py)
--      then claimable sets of vendors  zset  request id, by when it may be claimed (s)
-- ARGV 1 epoch  2 budget field  3 budget limit  4 assessment  5 now (s)  6 how long a label may be corrected (s)
--      7 records that an asked hash may hold  8 candidates
--      then per candidate 11: slot, pool record, item hash, request id, its field in the asked hash, item digest,
--      fact, message, open JSON, deadline, which of KEYS is the claimable set that it goes to (0: none)
-- Returns per candidate 'issued', 'gone' (the slot holds another item now), 'requested' (its item was
-- requested before; the slot is emptied) or 'budget'; or 'fenced' alone.
local epoch = tonumber(ARGV[1])
if epoch < tonumber(redis.call('GET', KEYS[1]) or '0') then return {'fenced'} end
redis.call('SET', KEYS[1], ARGV[1])

local now = math.floor(tonumber(ARGV[5]))
local uncorrectable = now - tonumber(ARGV[6])
local most = tonumber(ARGV[7])

-- Where the outcome stream begins: milliseconds and sequence number of its first entry.
local first
local function stream_begins()
  if not first then
    local entry = redis.call('XRANGE', KEYS[7], '-', '+', 'COUNT', 1)[1]
    local milliseconds, sequence = string.match(entry and entry[1] or '', '(%d+)-(%d+)')
    first = {tonumber(milliseconds) or math.huge, tonumber(sequence) or 0}
  end
  return first[1], first[2]
end

-- Whether nothing hangs on a record any more: it can be neither answered nor corrected, and its outcome is gone,
-- so that its item would not count twice.
local function is_over(record)
  local since = struct.unpack('>I4', record, 2)
  if string.sub(record, 1, 1) == 'o' or since >= uncorrectable then return false end
  local milliseconds, sequence = struct.unpack('>I6I4', record, 18)
  local begins, begins_with = stream_begins()
  return milliseconds < begins or milliseconds == begins and sequence < begins_with
end

-- Make room for one more record: of those that are over the oldest go.
local function make_room(asked)
  local excess = redis.call('HLEN', asked) + 1 - most
  if excess <= 0 then return end
  local kept, closed = redis.call('HGETALL', asked), {}
  for i = 1, #kept, 2 do
    if is_over(kept[i + 1]) then closed[#closed + 1] = {(struct.unpack('>I4', kept[i + 1], 2)), kept[i]} end
  end
  table.sort(closed, function(a, b) return a[1] < b[1] end)
  for i = 1, math.min(excess, #closed) do redis.call('HDEL', asked, closed[i][2]) end
end

-- Let fields of the budget go whose windows are over. The window before this one stays, as a clock may be set back;
-- window 0 is that of a budget that is never renewed.
local function forget_windows()
  local current = tonumber(string.match(ARGV[2], '|(%d+)$')) or 0
  for _, field in ipairs(redis.call('HKEYS', KEYS[5])) do
    local assessment, window = string.match(field, '^(.*)|(%d+)$')
    window = tonumber(window)
    if assessment == ARGV[4] and window > 0 and window < current - 1 then redis.call('HDEL', KEYS[5], field) end
  end
end

local used = tonumber(redis.call('HGET', KEYS[5], ARGV[2]) or '0')
if used == 0 then forget_windows() end
local limit = tonumber(ARGV[3])
local statuses = {}
for c = 0, tonumber(ARGV[8]) - 1 do
  local k, a = 8 + 4 * c, 9 + 11 * c
  local pool, drawn, request, asked = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local slot, record, hash, id, field = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local status
  if used >= limit then
    status = 'budget'
  elseif redis.call('HGET', pool, slot) ~= record then
    status = 'gone'
  else
    redis.call('HDEL', pool, slot)
    redis.call('RPUSH', drawn, slot .. ':' .. hash)
    if redis.call('HEXISTS', asked, field) == 1 then
      status = 'requested'
    else
      status = 'issued'
      used = used + 1
      make_room(asked)
      redis.call('HSET', asked, field, 'o' .. struct.pack('>I4', now) .. ARGV[a + 5] .. string.rep('\0', 18))
      redis.call('HINCRBY', KEYS[5], ARGV[2], 1)
      redis.call('HINCRBY', KEYS[6], 'issued|' .. ARGV[4], 1)
      -- Of an item that is forgotten by now a skipped request may be left, which would end this one with it.
      redis.call('DEL', request)
      redis.call('HSET', request, 'attempt', '1', 'assessment', ARGV[4], 'window', ARGV[2], 'fact', ARGV[a + 6],
        'message', ARGV[a + 7])
      redis.call('HSET', KEYS[2], id, ARGV[a + 8])
      redis.call('ZADD', KEYS[3], ARGV[a + 9], id)
      redis.call('HSET', KEYS[4], id .. '/1', ARGV[a + 7])
      local claimable = tonumber(ARGV[a + 10])
      if claimable > 0 then redis.call('ZADD', KEYS[claimable], ARGV[5], id) end
    end
  end
  statuses[#statuses + 1] = status
end
return statuses
