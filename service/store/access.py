"""Which rights a Redis user lacks, tested without a change to any key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from redis.exceptions import NoPermissionError

from service.domain.errors import Refused
from service.store.connection import Connection, translate_redis_errors

_TEST = """
if not redis.acl_check_cmd then return false end
local missing = {}
for i = 1, #ARGV, 2 do
  if not redis.acl_check_cmd(ARGV[i], ARGV[i + 1]) then
    table.insert(missing, ARGV[i] .. ' ' .. ARGV[i + 1])
  end
end
return missing
"""


def missing_rights(connection: Connection, wanted: Sequence[tuple[str, str]]) -> list[str] | None:
    """Of pairs of command and key, those that the user may not use; None if that cannot be tested.

    Redis answers this to scripts from version 7 on. Every command must begin with a key: Redis 7.0 crashes
    when it is asked about another one.

    Raises:
        Unavailable: Redis cannot answer now, or does not accept the login.
    """
    # Before the script, so that a login that is refused is not taken for a missing right to scripts.
    with translate_redis_errors(), suppress(NoPermissionError):
        connection.client.ping()
    if connection.clustered:
        return None
    try:
        with translate_redis_errors():
            lacking = connection.client.eval(_TEST, 0, *(part for pair in wanted for part in pair))
    except Refused:
        return None
    return None if lacking is None else [name.decode() for name in lacking]
