-- Write back what has changed of one shard: its keys, arguments and reply are those of flush_shard.lua.
-- include flush_shard
return flush_shard(nil)
