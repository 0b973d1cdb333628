"""Long polls: a call that waits for something to claim, within bounds."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from service.serving.vendor_api.problems import Kind, Refused

POLL_SECONDS = 0.25
"""Between two looks of a call that waits."""

Found = TypeVar("Found")


class Waits:
    """The waiting calls of all vendors, at most `most` of one; used from the listener's event loop alone.

    `note` gets the number of waiting calls of a vendor when it changes.
    """

    def __init__(self, *, most: int, stopping: Callable[[], bool], note: Callable[[str, int], None]) -> None:
        self._note = note
        self._most = most
        self._stopping = stopping
        self._waiting: Counter[str] = Counter()

    async def until(
        self, poll: Callable[[], list[Found]], request: Request, *, vendor: str, seconds: float
    ) -> list[Found]:
        """The first result of `poll` that is not empty; empty after `seconds`. With 0 seconds it polls once.

        `poll` runs in a thread that may wait. It does not run for a client that has disconnected, which
        would never learn what it has claimed.

        Raises:
            Refused: the vendor waits in too many calls already.
            ClientDisconnect: the client has disconnected.
        """
        ends = time.monotonic() + seconds
        if found := await run_in_threadpool(poll):
            return found
        if self._waiting[vendor] >= self._most and seconds > 0:
            raise Refused(Kind.TOO_MANY_WAITS, retry_seconds=1.0)
        self._count(vendor, 1)
        try:
            while (rest := ends - time.monotonic()) > 0 and not self._stopping():
                await asyncio.sleep(min(POLL_SECONDS, rest))
                if await request.is_disconnected():
                    raise ClientDisconnect
                if found := await run_in_threadpool(poll):
                    return found
        finally:
            self._count(vendor, -1)
        return []

    def _count(self, vendor: str, more: int) -> None:
        self._waiting[vendor] += more
        self._note(vendor, self._waiting[vendor])
