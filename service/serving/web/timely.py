"""HTTP connections that are given up when what nobody waits for is too long in coming."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""So long the first line and the headers of a request may take, and a body behind its answer."""


class TimelyProtocol(H11Protocol):
    """As uvicorn's, but a client that sends a request's head byte by byte, or none at all, is left.

    So is one that was answered and does not end its request's body. uvicorn itself gives up only connections
    that idle between two requests; so a few hundred clients that dawdle would take all places of a listener.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take in some bytes; the head of a request may be complete by now."""
        super().data_received(data)
        # Also while the body of a request comes that was answered without it: nobody else gives up on that.
        if not self._answering():
            self._await_head()
        elif self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._head_due is not None:
            self._head_due.cancel()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        # Not from the last byte on: one byte at a time must not win more time.
        if self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._head_due = None
        if not self._answering():
            self.transport.close()
