-- Apply labels to their requests, each at most once.
--
-- KEYS 1 open  2 deadlines  3 outbox  4 outcomes (stream)  5 tallies
--      6 labels (hash of this partition: batches, applied ever)  7 claims (see claim_requests.lua)
--      8 barred     hash  request id -> digests of those who have labelled its item
--      9 undecided  zset  id of the first request of an item that may be labelled again, by its last label (s)
--      then per label: request hash, asked hash (records: see store/request_registry.py), claimable set of its
--      vendor (`open`: none), labelled hash of its item
-- ARGV 1 outcomes to keep, about  2 how long a label may be corrected (s)  3 now (s)
--      4 whether several people may label an item (1)  5 labels
--      then per label 11: request id, its field in the asked hash, digest of item and vendor, digest of a request that
--      was asked of no vendor ('' where that makes no difference), kind, class digest, digest of the label,
--      label (msgpack), id of the item's first request, number of the opinion, digest of the annotator
--
-- States: open -> answered | skipped | expired; skipped -> answered by a correction;
--         answered -> answered by a correction, or retracted; retracted -> answered by a correction.
-- A label's digest is kept in the record, so the same label applied again changes nothing, whatever came
-- after it; behind the digest '+' if it changed something, '=' if it said nothing new, '!' if it contradicted, '-' if
-- there was nothing to retract, '~' if its annotator had labelled the item. The last four are kept so that a batch which is applied again, after later labels,
-- gives the same replies. Answers and skips that change nothing leave room for labels that revise.
-- The outcome stream gets an entry for every change of what is known of an item. The first one of an item is its
-- outcome, with the attempt that was answered if it was not the first; of an item that was skipped or has expired,
-- it says so in place of a class. A later one repeats it with the new label, and names in `of` the one it revises; once
-- the stream has trimmed the outcome there is nothing to revise, and the request is unknown. An entry with `of` and
-- without a label is a further draw of the item, for another grouping or of another prediction (issue_requests.lua).
-- An entry with `item` is the label of somebody else: `item` is the id of the outcome. It is revised like any other.
-- An entry with `gold` is about a gold item, and so no outcome; events of gold items are counted apart.
-- Returns per label 'applied', 'duplicate' or a reason to reject it; behind 'applied', if the label closed an
-- open request, a space and what is known of that request (JSON).
local HEAD, SEEN, MOST_SEEN, MOST_REPEATED = 27, 9, 32, 16
local MOST_OPINIONS = 9  -- as config/labels_per_item.py allows
local NO_ENTRY = string.rep('\0', 10)
local VAIN = {['-'] = 'nothing_to_retract', ['!'] = 'conflicting_label', ['~'] = 'same_annotator'}
local now = math.floor(tonumber(ARGV[3]))
local uncorrectable = now - tonumber(ARGV[2])
redis.call('HINCRBY', KEYS[6], 'batches', 1)

-- What became of a label before: its mark, or nil.
local function mark_of(seen, digest)
  for p = 1, #seen, SEEN do
    if string.sub(seen, p, p + SEEN - 2) == digest then return string.sub(seen, p + SEEN - 1, p + SEEN - 1) end
  end
end

-- Id of an entry of the stream.
local function unpacked(entry)
  local milliseconds, sequence = struct.unpack('>I6I4', entry)
  return string.format('%.0f-%.0f', milliseconds, sequence)
end

-- Assessment and fact of an answered request, its id, and '1' of a gold item; nil when the stream has trimmed it.
local function outcome_of(entry)
  local id = unpacked(entry)
  local found = redis.call('XRANGE', KEYS[4], id, id)[1]
  if not found then return end
  local gold = found[2][#found[2] - 1] == 'gold' and '1'
  return found[2][2], found[2][4], id, gold
end

-- Append to the stream; the new entry's id, packed.
local function append(assessment, fact, label, of, item, attempt, gold)
  local arguments = {'assessment', assessment, 'fact', fact, 'label', label}
  if of or item then
    arguments[7], arguments[8] = of and 'of' or 'item', of or item
  elseif attempt and attempt ~= '1' then
    arguments[7], arguments[8] = 'attempt', attempt
  end
  if gold then
    arguments[#arguments + 1] = 'gold'
    arguments[#arguments + 1] = gold
  end
  local id = redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[1], '*', unpack(arguments))
  local milliseconds, sequence = string.match(id, '(%d+)-(%d+)')
  return struct.pack('>I6I4', tonumber(milliseconds), tonumber(sequence))
end

-- Whether somebody is among some people.
local function is_among(people, person)
  for p = 1, #people, 8 do
    if string.sub(people, p, p + 7) == person then return true end
  end
  return false
end

-- Add who has corrected a label to those who have labelled the item, of which another request may be open.
local function note_corrector(labelled, first, opinion, person)
  local by = redis.call('HGET', labelled, 'by:' .. opinion)
  if not by or is_among(by, person) then return end
  redis.call('HSET', labelled, 'by:' .. opinion, by .. person)
  for n = 2, MOST_OPINIONS do
    local people = redis.call('HGET', KEYS[8], first .. '.' .. n)
    if people then redis.call('HSET', KEYS[8], first .. '.' .. n, people .. person) end
  end
end

-- Keep what the item of a request that was answered needs to be labelled again.
local function keep_item(labelled, request, first, opinion, person, class, entry)
  if opinion == '1' then
    local kept = redis.call('HMGET', request, 'assessment', 'fact', 'message')
    redis.call('HSET', labelled, 'assessment', kept[1], 'fact', kept[2], 'message', kept[3], 'entry', unpacked(entry))
  elseif redis.call('EXISTS', labelled) == 0 then
    return
  end
  redis.call('HSET', labelled, 'class:' .. opinion, class, 'by:' .. opinion, person)
  redis.call('HINCRBY', labelled, 'changes', 1)
  redis.call('EXPIRE', labelled, ARGV[2])
  redis.call('ZADD', KEYS[9], now, first)
end

-- Append the further draws of an item that was open, behind its outcome.
local function append_shared(request, entry)
  local of = unpacked(entry)
  for n = 1, tonumber(redis.call('HGET', request, 'shared') or '0') do
    local assessment, fact = string.match(redis.call('HGET', request, 'shared:' .. n), '^(%Z+)%z(.*)$')
    redis.call('XADD', KEYS[4], 'MAXLEN', '~', ARGV[1], '*', 'assessment', assessment, 'fact', fact, 'of', of)
  end
end

local statuses = {}
for l = 0, tonumber(ARGV[5]) - 1 do
  local k, a = 10 + 4 * l, 6 + 11 * l
  local request, asked, claimable, labelled = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local id, field, item, kind = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
  local class, digest, label = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  local first, opinion, person = ARGV[a + 8], ARGV[a + 9], ARGV[a + 10]
  local record = redis.call('HGET', asked, field)
  local state, since, about, known, entry, seen, mark, status, event
  if record then
    about = string.sub(record, 6, 9)
    state, since = string.sub(record, 1, 1), struct.unpack('>I4', record, 2)
    known, entry, seen = string.sub(record, 10, 17), string.sub(record, 18, HEAD), string.sub(record, HEAD + 1)
    mark = mark_of(seen, digest)
  end

  if not record or state ~= 'o' and since < uncorrectable then
    status = 'unknown_request'
  elseif about ~= item and about ~= ARGV[a + 3] then
    status = 'item_mismatch'
  elseif mark then
    status = VAIN[mark] or 'duplicate'
  elseif state == 'e' then
    status = 'expired_request'
  elseif state == 'o' and kind ~= 'retraction' and is_among(redis.call('HGET', KEYS[8], id) or '', person)
    or state == 's' and kind == 'correction' and is_among(redis.call('HGET', request, 'barred') or '', person) then
    status = 'same_annotator'
  elseif state == 'o' and kind == 'answer' then
    event = 'answered'
  elseif state == 'o' and kind == 'skip' then
    event = 'skipped'
  elseif kind == 'answer' and state == 'a' and known == class or kind == 'skip' and state == 's' then
    status = 'duplicate'
  elseif #seen >= SEEN * MOST_SEEN then
    status = 'too_many_revisions'
  elseif kind == 'answer' or kind == 'skip' then
    status = 'conflicting_label'
  elseif kind == 'correction' then
    if state == 'a' and known == class then status = 'duplicate'
    elseif state == 'a' then event = 'corrected'
    else event = 'answered' end
  elseif kind == 'retraction' then
    if state == 'a' then event = 'retracted'
    elseif state == 'r' then status = 'duplicate'
    else status = 'nothing_to_retract' end
  end

  local assessment, fact, of, about_item, attempt, gold
  if event then
    if state ~= 'o' and entry ~= NO_ENTRY then
      assessment, fact, of, gold = outcome_of(entry)
    else
      assessment, fact, about_item, attempt, gold =
        unpack(redis.call('HMGET', request, 'assessment', 'fact', 'item', 'attempt', 'gold'))
    end
    if not fact then event, status = nil, 'unknown_request' end
  end

  if event then
    status = 'applied'
    if state == 'o' then
      status = 'applied ' .. (redis.call('HGET', KEYS[1], id) or '')
      since = now
      redis.call('HDEL', KEYS[1], id)
      local people = redis.call('HGET', KEYS[8], id)
      -- For a correction of a skip.
      if people then redis.call('HSET', request, 'barred', people) end
      redis.call('HDEL', KEYS[8], id)
      redis.call('ZREM', KEYS[2], id)
      redis.call('HDEL', KEYS[3], id .. '/' .. redis.call('HGET', request, 'attempt'))
      if claimable ~= KEYS[1] then
        redis.call('ZREM', claimable, id)
        local claim = redis.call('HGET', KEYS[7], id)
        if claim then redis.call('HDEL', KEYS[7], id, '=' .. string.match(claim, '^%a %S+ (.*)$')) end
      end
    end
    if event == 'skipped' and about_item then
      -- The item keeps the labels that it has. A correction may still add one, but nobody else is asked.
      redis.call('HDEL', request, 'attempt', 'window', 'reserve', 'message')
      redis.call('EXPIRE', request, ARGV[2])
      redis.call('DEL', labelled)
    else
      local appended = append(assessment, fact, label, of, about_item, attempt, gold)
      if not of then
        entry = appended
        append_shared(request, entry)
        if state == 'o' and event == 'answered' and ARGV[4] == '1' then
          keep_item(labelled, request, first, opinion, person, class, entry)
        end
      elseif redis.call('EXISTS', labelled) == 1 then
        if event == 'retracted' then redis.call('HDEL', labelled, 'class:' .. opinion)
        else
          redis.call('HSET', labelled, 'class:' .. opinion, class)
          note_corrector(labelled, first, opinion, person)
        end
        redis.call('HINCRBY', labelled, 'changes', 1)
      end
      redis.call('DEL', request)
    end
    local now_in = event == 'skipped' and 's' or event == 'retracted' and 'r' or 'a'
    redis.call('HSET', asked, field, now_in .. struct.pack('>I4', since) .. item .. class .. entry .. seen .. digest .. '+')
    redis.call('HINCRBY', KEYS[5], (gold and 'gold_' or '') .. event .. '|' .. assessment, 1)
    -- Somebody answers: what was asked by now and expires is noted (expire_requests.lua).
    redis.call('HDEL', KEYS[5], 'unheard|' .. assessment)
    redis.call('HSET', KEYS[5], 'heard|' .. assessment, now)
  elseif not mark then
    local vain = status == 'duplicate' and '=' or status == 'nothing_to_retract' and '-'
      or status == 'conflicting_label' and '!' or status == 'same_annotator' and '~'
    local revises = kind == 'correction' or kind == 'retraction'
    if vain and #seen < SEEN * (revises and MOST_SEEN or MOST_REPEATED) then
      redis.call('HSET', asked, field, record .. digest .. vain)
    end
  end
  statuses[#statuses + 1] = status
end
return statuses
