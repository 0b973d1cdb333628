-- Draw items from the pool for one assessment, ask about gold items, and again about items that were labelled: mark,
-- budget, outbox, in one step.
--
-- KEYS 1 fence      string  highest leader epoch that has written
--      2 open       hash    request id -> JSON
--      3 deadlines  zset    request id, by deadline (s)
--      4 outbox     hash    request id/attempt -> message
--      5 budget     hash    assessment|window -> labels used; assessment|bucket -> window|reserve used|tokens|at (s)
--      6 tallies    hash    event|assessment -> how often
--      7 outcomes   stream  labels; entries of further draws of an item are added
--      8 barred     hash    request id -> digests of those who have labelled its item
--      9 gold       set     ids of the first requests of gold items that cannot be requested any more
--      then per candidate: pool hash, drawn list, request hash, asked hash (records: see store/request_registry.py),
--      claimable set of its vendor (zset  request id, by when it may be claimed (s); `open`: none)
--      of an item that was labelled: labelled hash and undecided set (see apply_labels.lua) in place of the first two
--      of a gold item: the gold set, twice
-- ARGV 1 epoch  2 budget field  3 budget limit  4 assessment  5 now (s)  6 how long a label may be corrected (s)
--      7 records that an asked hash may hold  8 outcomes to keep, about
--      9 the bucket's record as it was read  10 first candidates that the reserve pays
--      11 number of the window, empty without a bucket  12 reserve used  13 tokens  14 at (s)  15 candidates
--      then per candidate 10: field of its group's sketch in the pool, item hash (8 bytes), request id, its field in the
--      asked hash, item digest, fact, message, open JSON, deadline, whether it is a gold item (1); of an item that was
--      labelled, '' and the id of its first request in place of the first two; of a gold item, '' twice
-- An item that was requested before, for whatever grouping, is drawn all the same: its label counts as drawn by both.
-- Only a gold item that was requested before is not: it may be a usual item, too. And an item of the pool that was gold is
-- drawn in vain, also once its record has gone. Events of gold items are counted apart.
-- A draw changes no sketch: their owner takes the items in the drawn list out of them.
-- Returns per candidate 'issued', 'gone' (the sketch does not hold it any more, it was drawn or decided by then, or it was
-- gold), 'shared'
-- (its item was requested before) or 'budget' (it is spent, or its bucket has changed); or 'fenced' alone.
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

-- Whether a sketch holds an item: a bound of 8 bytes, then 16 bytes an item, of which the last 8 are its hash.
local function holds(sketch, item)
  local at = string.find(sketch, item, 17, true)
  while at and at % 16 ~= 1 do at = string.find(sketch, item, at + 1, true) end
  return at ~= nil
end

-- Whether a candidate is still there to be drawn, or to be asked about again.
local function is_there(pool, drawn, sketch, item, record, id)
  if item == '' then
    if record then redis.call('SADD', pool, id) end
    return redis.call('SISMEMBER', pool, id) == 0
  elseif sketch == '' then
    if record then
      -- The item was labelled so often that its first request is forgotten.
      redis.call('ZREM', drawn, item)
      redis.call('DEL', pool)
    end
    return redis.call('HEXISTS', pool, 'entry') == 1 and redis.call('ZSCORE', drawn, item)
  end
  return not redis.call('LPOS', drawn, sketch .. item) and holds(redis.call('HGET', pool, sketch) or '', item)
end

-- Digests of those who have labelled an item.
local function people_of(labelled)
  local fields, people = redis.call('HGETALL', labelled), ''
  for f = 1, #fields, 2 do
    if string.sub(fields[f], 1, 3) == 'by:' then people = people .. fields[f + 1] end
  end
  return people
end

-- Take it from there.
local function take(drawn, sketch, item, id)
  if item == '' then redis.call('SADD', drawn, id)
  elseif sketch == '' then redis.call('ZREM', drawn, item)
  else redis.call('RPUSH', drawn, sketch .. item) end
end

-- Let the label of an item, that it has or will have, count as drawn once more.
local function share(record, request, id, fact, opened)
  if string.sub(record, 18, 27) ~= string.rep('\0', 10) then
    local milliseconds, sequence = struct.unpack('>I6I4', record, 18)
    local id = string.format('%.0f-%.0f', milliseconds, sequence)
    if redis.call('XRANGE', KEYS[7], id, id)[1] then
      redis.call('XADD', KEYS[7], 'MAXLEN', '~', ARGV[8], '*', 'assessment', ARGV[4], 'fact', fact, 'of', id)
    end
  elseif redis.call('EXISTS', request) == 1 then
    local count = redis.call('HINCRBY', request, 'shared', 1)
    redis.call('HSET', request, 'shared:' .. count, ARGV[4] .. '\0' .. fact)
    -- While the request is open, evidence for this group waits for it, too.
    local known = redis.call('HGET', KEYS[2], id)
    if known then
      local head, others = string.match(known, '^(.*),"shared":%[(.*)%]}$')
      local shared = (others and others .. ',' or '') .. opened
      redis.call('HSET', KEYS[2], id, (head or string.sub(known, 1, -2)) .. ',"shared":[' .. shared .. ']}')
    end
  end
end

-- A budget that renews has a field per window, numbered in order. The last one before a new one stays: its requests
-- may still expire, and a clock that was ahead may go back to it. Window 0 is that of a budget that does not renew.
local window = tonumber(string.match(ARGV[2], '|(%d+)$'))
if window and redis.call('HEXISTS', KEYS[5], ARGV[2]) == 0 then
  local prefix, earlier = ARGV[4] .. '|', {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[5])) do
    local other = string.sub(field, 1, #prefix) == prefix and tonumber(string.sub(field, #prefix + 1))
    if other and 0 < other and other < window then earlier[#earlier + 1] = other end
  end
  table.sort(earlier)
  for i = 1, #earlier - 1 do redis.call('HDEL', KEYS[5], string.format('%s%d', prefix, earlier[i])) end
end

local used = tonumber(redis.call('HGET', KEYS[5], ARGV[2]) or '0')
local limit = tonumber(ARGV[3])
local bucket, reserve_used, tokens = ARGV[4] .. '|bucket', tonumber(ARGV[12]), tonumber(ARGV[13])
local has_bucket = ARGV[11] ~= ''
if has_bucket and (redis.call('HGET', KEYS[5], bucket) or '') ~= ARGV[9] then limit = 0 end
local statuses = {}
for c = 0, tonumber(ARGV[15]) - 1 do
  local k, a = 10 + 5 * c, 16 + 10 * c
  local pool, drawn, request, asked, claimable = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4]
  local sketch, item, id, field = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local is_gold = ARGV[a + 9] == '1'
  local record = redis.call('HGET', asked, field)
  local status
  if not is_there(pool, drawn, sketch, item, record, id) then
    status = 'gone'
  elseif record then
    status = 'shared'
    take(drawn, sketch, item, id)
    share(record, request, id, ARGV[a + 5], ARGV[a + 7])
  elseif sketch ~= '' and redis.call('SISMEMBER', KEYS[9], id) == 1 then
    status = 'gone'
    take(drawn, sketch, item, id)
  elseif used >= limit then
    status = 'budget'
  else
    status = 'issued'
    used = used + 1
    if c < tonumber(ARGV[10]) then reserve_used = reserve_used + 1 else tokens = tokens - 1 end
    take(drawn, sketch, item, id)
    make_room(asked)
    redis.call('HSET', asked, field, 'o' .. struct.pack('>I4', now) .. ARGV[a + 4] .. string.rep('\0', 18))
    redis.call('HINCRBY', KEYS[5], ARGV[2], 1)
    -- Of an item that is forgotten by now a skipped request may be left, which would end this one with it.
    redis.call('DEL', request)
    redis.call('HSET', request, 'attempt', '1', 'assessment', ARGV[4], 'window', ARGV[2], 'fact', ARGV[a + 5],
      'message', ARGV[a + 6])
    if c < tonumber(ARGV[10]) then redis.call('HSET', request, 'reserve', '1') end
    if is_gold then redis.call('HSET', request, 'gold', '1') end
    if sketch == '' and item ~= '' then
      redis.call('HSET', request, 'item', redis.call('HGET', pool, 'entry'))
      redis.call('HSET', KEYS[8], id, people_of(pool))
    end
    redis.call('HSET', KEYS[2], id, ARGV[a + 7])
    redis.call('ZADD', KEYS[3], ARGV[a + 8], id)
    redis.call('HSET', KEYS[4], id .. '/1', ARGV[a + 6])
    if claimable ~= KEYS[2] then redis.call('ZADD', claimable, ARGV[5], id) end
  end
  if status == 'issued' or status == 'shared' then
    redis.call('HINCRBY', KEYS[6], (is_gold and 'gold_' or '') .. status .. '|' .. ARGV[4], 1)
  end
  statuses[#statuses + 1] = status
end
if has_bucket and limit > 0 then
  redis.call('HSET', KEYS[5], bucket, string.format('%s|%d|%.6f|%s', ARGV[11], reserve_used, tokens, ARGV[14]))
end
return statuses
