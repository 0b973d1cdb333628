"""The connection to Redis: the client, its scripts, and the translation of its errors."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import redis
from redis.cluster import RedisCluster
from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError

from service.domain.errors import ConfigurationError, FenceRefused, Refused, Unavailable
from service.store.keys import ModelKeys

_NO_LOGIN = re.compile(r"\bNOAUTH\b")
_NO_RIGHT = re.compile(r"\bNOPERM\b|can't run this command|can't access at least one of the keys")
"""In an error reply; within a script's error Redis 7 has only words, not the code."""

_NO_DATABASE = re.compile(r"\bDB index is out of range|\binvalid DB index")

_COMMAND = re.compile(r"'([A-Za-z]+(?:\|[A-Za-z-]+)?)' command|\b([A-Z]+) is needed")
"""The refused command; the rest of a reply is never shown, as it may quote what was sent."""

_PASSING_REPLIES = re.compile(
    r"(?:^|: -|caused error: )"
    r"(?:LOADING|BUSY|MASTERDOWN|READONLY|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|OOM|MISCONF)\b"
)
"""Codes of error replies after which a retry may succeed, perhaps after an operator acts.

A reply starts with its code. Before Redis 7 a script's error has it after a dash, and a pipeline's error
after other words.
"""

_READ_ONLY = re.compile(r"\bREADONLY\b")
"""Reply to a write of a master that became a replica; before Redis 7 within a script's error."""


class UnreachableError(redis.ConnectionError):
    """No connection to a server can be made; the cause says why.

    Attributes:
        address: of the server.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(f"no connection to {address}")


_PASSING_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ReadOnlyError,
    redis.OutOfMemoryError,
    redis.exceptions.InvalidResponse,
    redis.exceptions.TryAgainError,
    # Of a cluster: moved while it was asked, or none of its nodes answers, or not all slots are served.
    redis.exceptions.AskError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,
)
"""The same where the client has a class for the code, and cuts it from the text."""


def redis_refusal(error: BaseException) -> Refused | None:
    """The refusal behind an error of the client, or behind its causes, with a remedy; None if there is none.

    An operator may fix a wrong login, a missing right or a certificate without a restart of this process, so
    all of them are retried.
    """
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            why = cause.reason or type(cause).__name__
            if isinstance(cause, ssl.SSLCertVerificationError):
                why = cause.verify_message
            remedy = f"the TLS handshake failed; check the certificates of both sides: {why}"
            return Refused("redis", error, remedy)
        if isinstance(cause, ConfigurationError):
            [(key, problem), *_] = cause.problems
            return Refused("redis", error, f"{key} {problem}")
        if isinstance(cause, NoPermissionError) or _NO_RIGHT.search(str(cause)):
            command = _COMMAND.search(str(cause))
            what = f" ({(command[1] or command[2]).upper()})" if command else ""
            remedy = f"the user lacks a right{what}; grant the rights that `credence rights redis` prints"
            return Refused("redis", error, remedy)
        if _NO_DATABASE.search(str(cause)):
            return Refused(
                "redis", error, "it has no such database; `redis.url` should end in /0, or in no number"
            )
        if isinstance(cause, (AuthenticationError, AuthorizationError)) or _NO_LOGIN.search(str(cause)):
            return Refused("redis", error, "the login failed; check username and password of `redis`")
    return None


def _wrong_answer(error: BaseException) -> str:
    """What is known of a server that answers, but not as Redis does; empty if that is not what is wrong."""
    for cause in _chain(error):
        if isinstance(cause, redis.exceptions.InvalidResponse):
            return "no answer as Redis gives it; the port is another service's"
        if isinstance(cause, redis.ConnectionError) and "closed by server" in str(cause):
            return "it closed the connection"
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__


@contextmanager
def translate_redis_errors() -> Iterator[None]:
    """Turn failures that a retry can cure into `Unavailable`; all others pass."""
    try:
        yield
    except redis.exceptions.CrossSlotTransactionError:
        raise  # a mistake in the program, for all its class
    except _PASSING_ERRORS as error:
        address = error.address if isinstance(error, UnreachableError) else ""
        unavailable = Unavailable("redis", error, address=address, why=_wrong_answer(error))
        raise redis_refusal(error) or unavailable from error
    except redis.ResponseError as error:
        if refusal := redis_refusal(error):
            raise refusal from error
        if _PASSING_REPLIES.search(str(error)):
            raise Unavailable("redis", error) from error
        raise


Argument = str | bytes | int | float
"""An argument of a script, as the client encodes it."""

_CALL = re.compile(r"redis\.call\(\s*'([A-Z]+)'")
_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)


def commands_of(script: str) -> list[str]:
    """The commands that a script in `lua/` calls; `script` is the name of its file."""
    return sorted(set(_CALL.findall(_script_text(script))))


def _script_text(name: str) -> str:
    text = resources.files("service.store").joinpath(f"lua/{name}.lua").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _script_text(found[1]), text)


def _guarded(name: str) -> str:
    """A script that does nothing unless the user may call all its commands.

    Redis does not roll back a script that fails half-way; when it is run again, its partial work would count
    as the whole. Redis before 7 cannot check this.
    """
    # All of them begin with a key. Redis 7.0 crashes when asked about a command without one.
    wanted = ", ".join(f"'{command}'" for command in commands_of(name))
    guard = (
        f"if redis.acl_check_cmd then for _, name in ipairs({{{wanted}}}) do "
        "if not redis.acl_check_cmd(name, KEYS[1]) then "
        "return redis.error_reply('NOPERM ' .. name .. ' is needed') end end end"
    )
    return f"{guard}\n{_script_text(name)}"


class Connection:
    """A Redis client with Credence's scripts.

    Args:
        client: must not retry by itself: a write whose reply was lost would be applied twice.
        prefix: first part of every key.
    """

    def __init__(self, client: redis.Redis | RedisCluster, prefix: str) -> None:
        self.client: Any = client
        self.prefix = prefix
        self._scripts: dict[str, tuple[str, str]] = {}

    @property
    def clustered(self) -> bool:
        """Whether keys of several models may be on several servers."""
        return isinstance(self.client, RedisCluster)

    def run(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Run one of the scripts in `lua/` by its file's name.

        Raises:
            Unavailable: Redis cannot answer now. The script may or may not have been applied;
                every script recognises its own work when it is run again.
        """
        text, digest = self._script(script)
        with translate_redis_errors():
            try:
                try:
                    return self.client.evalsha(digest, len(keys), *keys, *arguments)
                except redis.exceptions.NoScriptError:
                    # By its text, on the node that lacks it: loading it would ask all nodes of a cluster.
                    return self.client.eval(text, len(keys), *keys, *arguments)
            except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
                self._resolve_again(error)
                raise

    @contextmanager
    def pipeline(self, *, transaction: bool) -> Iterator[Any]:
        """A pipeline of the client, which is executed within the block.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        with translate_redis_errors():
            yield self.client.pipeline(transaction=transaction)

    def _script(self, name: str) -> tuple[str, str]:
        if name not in self._scripts:
            text = _guarded(name)
            self._scripts[name] = text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return self._scripts[name]

    def _resolve_again(self, error: Exception) -> None:
        """Resolve the configured name again at the next command: the master may have changed."""
        if self.clustered:
            # The nodes that were found take the place of the configured one; all may have moved since.
            for node in self.client.startup_nodes:
                self.client.nodes_manager.startup_nodes.setdefault(node.name, node)
        elif isinstance(error, redis.ReadOnlyError) or _READ_ONLY.search(str(error)):
            self.client.connection_pool.disconnect(inuse_connections=False)


class ModelStore:
    """Base of the stores of one model.

    Every method raises `Unavailable` while Redis cannot answer, and may then be called again with the same
    arguments: what was applied already is not applied twice.
    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self._keys = keys

    def _run_fenced(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Run a script of the leader, which refuses an epoch older than that of the last write.

        Raises:
            FenceRefused: a newer leader has written.
        """
        reply = self._connection.run(script, [self._keys.fence, *keys], arguments)
        if reply in (b"fenced", [b"fenced"]):
            raise FenceRefused("a newer leader has taken over; this process no longer leads")
        return reply
