-- Go back to an offset behind which the log does not hold any more what was read from it.
--
-- KEYS 1.. progress  hash  next_offset, flush_id; all models' in one step where one server has them all
-- ARGV 1   offset to go on from
-- Returns how many were ahead of it.
local rewound = 0
for _, key in ipairs(KEYS) do
  local next_offset = redis.call('HGET', key, 'next_offset')
  if next_offset and tonumber(next_offset) > tonumber(ARGV[1]) then
    redis.call('HDEL', key, 'flush_id')
    redis.call('HSET', key, 'next_offset', ARGV[1])
    rewound = rewound + 1
  end
end
return rewound
