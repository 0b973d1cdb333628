-- Remember a call to the vendor API, so that it is done once.
--
-- KEYS 1 record  string  'running', fingerprint and owner with spaces between; or 'done', fingerprint, a space and
--                        the response. Expires by itself.
--      2 recent  list    digests of the vendor's calls that were done, the newest first; how KEYS 1 ends
-- ARGV 1 begin, finish or abandon  2 owner  3 fingerprint of the call (hexadecimal)
--      4 how long it may run (s)  5 how long its response is kept (s)  6 response, for finish
--      7 digest of the key  8 records of calls that were done to keep; the oldest gives way
-- Neither owner nor fingerprint holds a space.
-- Returns 'new', 'running', 'done' or 'different'; and the response, if it is done. Without meaning but for begin.
local verb, owner, fingerprint = ARGV[1], ARGV[2], ARGV[3]
local running = 'running ' .. fingerprint .. ' ' .. owner
local record = redis.call('GET', KEYS[1])
if verb == 'finish' then
  -- Somebody else's by now, if the mark has ended by itself.
  if not record or record == running then
    redis.call('SET', KEYS[1], 'done ' .. fingerprint .. ' ' .. ARGV[6], 'EX', ARGV[5])
    local many = redis.call('LPUSH', KEYS[2], ARGV[7]) > tonumber(ARGV[8])
    local oldest = many and redis.call('RPOP', KEYS[2])
    if oldest then redis.call('DEL', string.sub(KEYS[1], 1, -#ARGV[7] - 1) .. oldest) end
    redis.call('EXPIRE', KEYS[2], ARGV[5])
  end
elseif verb == 'abandon' then
  if record == running then redis.call('DEL', KEYS[1]) end
elseif not record or record == running then
  redis.call('SET', KEYS[1], running, 'EX', ARGV[4])
else
  local state, kept, rest = string.match(record, '^(%a+) (%x+) (.*)$')
  if kept ~= fingerprint then return {'different', ''} end
  if state == 'done' then return {'done', rest} end
  return {'running', ''}
end
return {'new', ''}
