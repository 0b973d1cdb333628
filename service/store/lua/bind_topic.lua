-- Make sure that a stored offset is of the topic that is there now, and no other one of its name.
--
-- KEYS 1 progress  hash  next_offset, topic_id, flush_id
-- ARGV 1 id of the topic
--      2 offset to go on from if the stored one is of another topic
-- Returns {'same' | 'adopted' | 'restarted', the offset that was stored or ''}
local stored = redis.call('HMGET', KEYS[1], 'next_offset', 'topic_id')
local next_offset, topic_id = stored[1] or '', stored[2]
if topic_id == ARGV[1] then return {'same', next_offset} end

redis.call('HSET', KEYS[1], 'topic_id', ARGV[1])
if not topic_id or next_offset == '' then return {'adopted', next_offset} end

-- The flush that was stored last must not be taken for one of the new topic.
redis.call('HDEL', KEYS[1], 'flush_id')
redis.call('HSET', KEYS[1], 'next_offset', ARGV[2])
return {'restarted', next_offset}
