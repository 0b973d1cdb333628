-- Go back to an offset behind which the log does not hold any more what was read from it.
--
-- KEYS 1 progress  hash  next_offset, flush_id
-- ARGV 1 offset to go on from
-- Returns 'rewound' | 'same'
local next_offset = redis.call('HGET', KEYS[1], 'next_offset')
if not next_offset or tonumber(next_offset) <= tonumber(ARGV[1]) then return 'same' end

redis.call('HDEL', KEYS[1], 'flush_id')
redis.call('HSET', KEYS[1], 'next_offset', ARGV[1])
return 'rewound'
