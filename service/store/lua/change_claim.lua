-- Renew or release a claim, or hold its request while the answer is on its way.
--
-- KEYS 1 claimable  2 claims  3 deadlines  (as in claim_requests.lua)
-- ARGV 1 renew, release, submit or unsubmit  2 request id  3 claim id  4 now (s)
--      5 when a renewed lease ends (s), if the deadline is not sooner
-- Returns 'ok', 'unknown' (not open, or not this vendor's), 'lost' (held under another claim id, or not at all),
-- 'expired' (the lease has ended) or 'submitted' (cannot be renewed or released); and the end of the lease, or '0'.
local verb, id, claim = ARGV[1], ARGV[2], ARGV[3]
local deadline = redis.call('ZSCORE', KEYS[3], id)
if not deadline or not redis.call('ZSCORE', KEYS[1], id) then return {'unknown', '0'} end

local record = redis.call('HGET', KEYS[2], id)
if not record then return {verb == 'release' and 'ok' or 'lost', '0'} end
local state, ends, holder = string.match(record, '^(%a) (%S+) (.*)$')
if holder ~= claim then return {'lost', '0'} end

if state == 's' then
  if verb == 'renew' or verb == 'release' then return {'submitted', '0'} end
elseif verb == 'release' then
  redis.call('HDEL', KEYS[2], id, '=' .. claim)
  redis.call('ZADD', KEYS[1], ARGV[4], id)
  return {'ok', '0'}
elseif tonumber(ends) <= tonumber(ARGV[4]) then
  return {'expired', '0'}
end

local score = ends
if verb == 'renew' then
  ends = tonumber(ARGV[5]) < tonumber(deadline) and ARGV[5] or deadline
  score = ends
elseif verb == 'submit' then
  state, score = 's', '+inf'
else
  state = 'c'
end
redis.call('HSET', KEYS[2], id, state .. ' ' .. ends .. ' ' .. claim)
redis.call('ZADD', KEYS[1], score, id)
return {'ok', ends}
