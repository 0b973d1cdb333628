"""Which dead letters were replayed, so that none is twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from service.store.connection import Connection, unavailable_when_away
from service.store.keys import replay_key

ReplayStatus = Literal["begun", "replayed", "unfinished"]

REMEMBERED_DAYS = 400

_BEGUN = b"begun"
_REPLAYED = b"replayed"


class ReplayMarks:
    """A mark for every refused message that was sent back, by where it stood."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, places: Sequence[str], *, retry_unfinished: bool) -> list[ReplayStatus]:
        """Mark messages as about to be sent.

        Args:
            places: where they stood, each once.
            retry_unfinished: begin those again that were begun and not finished.

        Returns:
            Per message `begun`, if it is to be sent now; `replayed`, if it was; `unfinished`, if somebody is
            sending it, or was cut off while doing so.

        Raises:
            Unavailable: Redis cannot answer now; then nothing may be sent.
        """
        if not places:
            return []
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=False)
            for key in self._keys(places):
                pipeline.set(key, _BEGUN, nx=True, ex=REMEMBERED_DAYS * 86_400)
                pipeline.get(key)
            replies = pipeline.execute()
        return [
            "begun" if ours else _status(mark, retry_unfinished=retry_unfinished)
            for ours, mark in zip(replies[::2], replies[1::2], strict=True)
        ]

    def look(self, places: Sequence[str], *, retry_unfinished: bool) -> list[ReplayStatus]:
        """What `begin` would say; marks nothing.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        if not places:
            return []
        with unavailable_when_away():
            marks = self._connection.client.mget(self._keys(places))
        return [_status(mark, retry_unfinished=retry_unfinished) for mark in marks]

    def finish(self, places: Sequence[str]) -> None:
        """Mark messages as sent.

        Raises:
            Unavailable: Redis cannot answer now; they stay unfinished.
        """
        if not places:
            return
        with unavailable_when_away():
            pipeline = self._connection.client.pipeline(transaction=False)
            for key in self._keys(places):
                pipeline.set(key, _REPLAYED, ex=REMEMBERED_DAYS * 86_400)
            pipeline.execute()

    def _keys(self, places: Sequence[str]) -> list[str]:
        return [replay_key(self._connection.prefix, place) for place in places]


def _status(mark: bytes | None, *, retry_unfinished: bool) -> ReplayStatus:
    if mark == _REPLAYED:
        return "replayed"
    return "begun" if mark is None or retry_unfinished else "unfinished"
