"""Which dead letters were redriven, so that none is sent twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from service.store.connection import Connection, translate_redis_errors
from service.store.keys import replay_key

ReplayStatus = Literal["begun", "replayed", "unfinished"]

REMEMBERED_DAYS = 400

_BEGUN = b"begun"
_REPLAYED = b"replayed"


class ReplayMarks:
    """A mark for every redriven message, by its place in the source topic.

    Every method raises `Unavailable` while Redis cannot answer: if `begin` does, nothing may be sent; if
    `finish` does, the messages stay unfinished.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, places: Sequence[str], *, retry_unfinished: bool) -> list[ReplayStatus]:
        """Mark messages as about to be sent; their places differ.

        With `retry_unfinished`, messages that were begun and not finished begin again.

        Returns:
            Per message `begun`, if it is to be sent now; `replayed`, if it was; `unfinished`, if another
            process is sending it, or was interrupted while sending it.
        """
        with self._connection.pipeline(transaction=False) as pipeline:
            for key in self._keys(places):
                pipeline.set(key, _BEGUN, nx=True, ex=REMEMBERED_DAYS * 86_400)
                pipeline.get(key)
            replies = pipeline.execute()
        return [
            "begun" if ours else _status(mark, retry_unfinished=retry_unfinished)
            for ours, mark in zip(replies[::2], replies[1::2], strict=True)
        ]

    def check(self, places: Sequence[str], *, retry_unfinished: bool) -> list[ReplayStatus]:
        """What `begin` would return, without a mark."""
        if not places:
            return []
        with translate_redis_errors():
            marks = self._connection.client.mget(self._keys(places))
        return [_status(mark, retry_unfinished=retry_unfinished) for mark in marks]

    def finish(self, places: Sequence[str]) -> None:
        """Mark messages as sent."""
        with self._connection.pipeline(transaction=False) as pipeline:
            for key in self._keys(places):
                pipeline.set(key, _REPLAYED, ex=REMEMBERED_DAYS * 86_400)
            pipeline.execute()

    def _keys(self, places: Sequence[str]) -> list[str]:
        return [replay_key(self._connection.prefix, place) for place in places]


def _status(mark: bytes | None, *, retry_unfinished: bool) -> ReplayStatus:
    if mark == _REPLAYED:
        return "replayed"
    return "begun" if mark is None or retry_unfinished else "unfinished"
