"""What every part of the store shares: the client, its scripts, and how its failures are told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

import redis

from service.errors import Unavailable

_PASSING_REPLIES = re.compile(
    r"(?:^|: -|caused error: )"
    r"(?:LOADING|BUSY|MASTERDOWN|READONLY|NOREPLICAS|CLUSTERDOWN|TRYAGAIN|OOM|MISCONF)\b"
)
"""Codes of error replies that go away by themselves or by an operator's hand: slow down, try again.

They stand first; but before Redis 7 behind a dash within a script's error, and in a pipeline behind its
own words.
"""

_PASSING_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ReadOnlyError,
    redis.OutOfMemoryError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
)
"""The same where the client has a class for the code, and cuts it from the text."""


@contextmanager
def unavailable_when_away() -> Iterator[None]:
    """Turn failures that a retry can cure into `Unavailable`; all others pass."""
    try:
        yield
    except _PASSING_ERRORS as error:
        raise Unavailable("redis", error) from error
    except redis.ResponseError as error:
        if _PASSING_REPLIES.search(str(error)):
            raise Unavailable("redis", error) from error
        raise


class Connection:
    """A Redis client with Credence's scripts.

    Args:
        client: must not retry by itself: a write whose reply was lost would be applied twice.
        prefix: first part of every key.
    """

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self.client: Any = client
        self.prefix = prefix
        self._scripts: dict[str, Any] = {}

    def run(self, script: str, keys: Sequence[str], arguments: Sequence[str | bytes | int | float]) -> Any:
        """Run one of the scripts in `lua/` by its file's name.

        Raises:
            Unavailable: Redis cannot answer now. The script may or may not have been applied;
                every script recognises its own work when it is run again.
        """
        if script not in self._scripts:
            text = resources.files("service.store").joinpath(f"lua/{script}.lua").read_text(encoding="utf-8")
            self._scripts[script] = self.client.register_script(text)
        with unavailable_when_away():
            return self._scripts[script](keys=list(keys), args=list(arguments))

    def ping(self) -> None:
        """Ask whether Redis answers.

        Raises:
            Unavailable: it does not.
        """
        with unavailable_when_away():
            self.client.ping()
