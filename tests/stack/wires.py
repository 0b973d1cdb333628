"""TCP wires between a client and a server, which fail on command.

All wires of a test turn in one thread of their own. A wire that is set to fail does so at once, on the
connections that stand as well as on new ones; mended, it carries bytes as if nothing had been.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self, TypeVar

WireState = Literal["whole", "cut", "silent", "slow", "half_closed", "loses_replies", "holds_replies"]
"""What a wire does:

- `whole`: carries bytes.
- `cut`: connections are reset, new ones too.
- `silent`: no byte arrives and no connection ends, as when packets are dropped; when the wire is whole
  again they arrive, as TCP sends them again.
- `slow`: bytes arrive late, in order.
- `half_closed`: the server's side ends and what it says is lost, but it still hears what the client says.
- `loses_replies`: the server gets the request, and does it; the reply is lost and the connection reset.
- `holds_replies`: the server gets the request, and does it; replies arrive when the wire is whole again.
"""

_CHUNK_BYTES = 65_536

Made = TypeVar("Made")


class _Link:
    """One connection through a wire."""

    def __init__(self, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self.to_client = to_client
        self.to_server = to_server
        self.replies_ended = False

    def reset(self) -> None:
        self.to_client.transport.abort()
        self.to_server.transport.abort()

    def end_replies(self) -> None:
        self.replies_ended = True
        _say_end(self.to_client)


class Wire:
    """A port of 127.0.0.1 that leads to another one. Made by `Wires.wire`.

    Attributes:
        port: where clients connect.
        target_port: where it leads.
        delay_seconds: of every chunk of bytes, each way, while the wire is slow.
    """

    def __init__(self, turning: Wires, target_port: int, *, delay_seconds: float = 0.3) -> None:
        self.target_port = target_port
        self.delay_seconds = delay_seconds
        self.port = 0
        self._turning = turning
        self._state: WireState = "whole"
        self._changed = asyncio.Event()
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    @property
    def state(self) -> WireState:
        """What it does now."""
        return self._state

    def become(self, state: WireState) -> None:
        """Fail in one way, or be whole; returns once it does."""
        self._turning.call(lambda: self._become(state))

    def _become(self, state: WireState) -> None:
        self._state = state
        for link in self._links:
            if state == "cut":
                link.reset()
            elif state == "half_closed":
                link.end_replies()
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Reset all connections and listen no more."""
        self._turning.call(self._end)

    def _end(self) -> None:
        self._become("cut")
        if self._server is not None:
            self._server.close()

    async def listen(self) -> None:
        """Begin to carry; called by `Wires`."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _carry(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self._state == "cut":
            to_client.transport.abort()
            return
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            to_client.transport.abort()
            return
        link = _Link(to_client, to_server)
        self._links.add(link)
        if self._state == "half_closed":
            link.end_replies()
        try:
            await asyncio.gather(
                self._pump(from_client, to_server, link, replies=False),
                self._pump(from_server, to_client, link, replies=True),
            )
        finally:
            self._links.discard(link)
            to_client.close()
            to_server.close()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, link: _Link, *, replies: bool
    ) -> None:
        try:
            while chunk := await source.read(_CHUNK_BYTES):
                if self._state == "slow":
                    await asyncio.sleep(self.delay_seconds)
                await self._held(replies=replies)
                if replies and self._state == "loses_replies":
                    link.reset()
                    return
                if not (replies and link.replies_ended):
                    sink.write(chunk)
                    await sink.drain()
            await self._held(replies=replies)
            _say_end(sink)
        except OSError:
            link.reset()

    async def _held(self, *, replies: bool) -> None:
        while self._state == "silent" or (replies and self._state == "holds_replies"):
            await self._changed.wait()


class Wires:
    """The thread in which wires turn; a context manager that leaves no port and no thread behind."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._wires: list[Wire] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._thread.start()

    def wire(self, target_port: int, *, port: int = 0) -> Wire:
        """A new wire.

        Args:
            target_port: of 127.0.0.1, where it leads; nothing need listen there yet.
            port: where it listens; a free one if 0.
        """
        wire = Wire(self, target_port)
        wire.port = port
        asyncio.run_coroutine_threadsafe(wire.listen(), self._loop).result()
        self._wires.append(wire)
        return wire

    def become(self, state: WireState) -> None:
        """Have all wires fail in one way, or be whole."""
        for wire in self._wires:
            wire.become(state)

    def call(self, function: Callable[[], Made]) -> Made:
        """What a function gives that is run where the wires turn."""
        done: Future[Made] = Future()

        def run() -> None:
            try:
                done.set_result(function())
            except Exception as error:  # noqa: BLE001 - handed to the caller's thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()

    def close(self) -> None:
        """Reset all connections and listen no more."""
        for wire in self._wires:
            wire.close()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _say_end(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, RuntimeError):
        if not writer.transport.is_closing():
            writer.write_eof()
