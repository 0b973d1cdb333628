"""Hears what every user of a Redis does: the commands of its clients, and those that its scripts call."""

from __future__ import annotations

import re
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import redis
from harness import wait_for

_LINE = re.compile(rb"\+[0-9.]+ \[\d+ (\S+)\] (.*)")
_ARGUMENT = re.compile(rb'"((?:\\.|[^"\\])*)"')
_DIGITS = re.compile(r"\d+|[0-9a-f]{16,}")

Command = tuple[bytes, ...]


class RedisRecorder:
    """Listens to one server by MONITOR, while it is entered.

    Attributes:
        commands: of every user, the distinct ones; those that differ in numbers and content alone are one.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._admin = redis.Redis(port=port)
        self._users: dict[str, str] = {}
        self._gone: set[str] = set()
        self._looked = 0.0
        self._seen: dict[str, dict[tuple[str, ...], Command]] = {}
        self._quick = "(gone)"
        self._heard: bytes = b""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._listen)

    @contextmanager
    def running(self, user: str) -> Iterator[None]:
        """Take clients for this user's that are gone before it is known whose they are."""
        self._catch_up()  # what came before is not this user's
        self._quick = user
        try:
            yield
        finally:
            self._catch_up()
            self._quick = "(gone)"

    def commands(self, user: str) -> list[Command]:
        self._catch_up()
        return list(self._seen.get(user, {}).values())

    def refused(self, rules: Iterable[str], commands: Sequence[Command]) -> list[Command]:
        """Those of the commands that a user with these rules alone may not run."""
        self._admin.execute_command("ACL", "SETUSER", "probe", "reset", "on", "-@all", *rules)
        pipeline = self._admin.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command("ACL", "DRYRUN", "probe", *command)
        replies = pipeline.execute()
        self._admin.execute_command("ACL", "DELUSER", "probe")
        return [command for command, reply in zip(commands, replies, strict=True) if reply != b"OK"]

    def _listen(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.settimeout(0.2)
            connection.sendall(b"MONITOR\r\n")
            waiting, user = b"", ""
            while not self._stopping.is_set():
                try:
                    waiting += connection.recv(1 << 20)
                except TimeoutError:
                    continue
                *lines, waiting = waiting.split(b"\r\n")
                heard = [logged for line in lines if (logged := _LINE.fullmatch(line))]
                self._forget_users()
                self._know_users({logged[1].decode() for logged in heard} - {"lua"})
                for logged in heard:
                    address = logged[1].decode()
                    # What a script calls follows the script's own line.
                    user = user if address == "lua" else self._users.get(address, self._quick)
                    command = tuple(_plain(each) for each in _ARGUMENT.findall(logged[2]))
                    self._note(user, command)
                    if command[0] == b"ECHO":
                        self._heard = command[1]

    def _note(self, user: str, command: Command) -> None:
        shape = tuple(_DIGITS.sub("0", part.decode(errors="replace")[:60]) for part in command[:12])
        self._seen.setdefault(user, {}).setdefault((shape[0].upper(), *shape[1:]), command)

    def _catch_up(self) -> None:
        """Wait until all was heard that was done so far."""
        mark = secrets.token_bytes(8).hex().encode()
        self._admin.echo(mark.decode())
        wait_for(lambda: self._heard == mark, seconds=30, what="what MONITOR tells")

    def _know_users(self, addresses: set[str]) -> None:
        """Learn who is behind them, before anything else: who is quick has gone again soon."""
        if addresses - self._users.keys():
            self._users |= {each["addr"]: each["user"] for each in self._admin.client_list()}

    def _forget_users(self) -> None:
        """Forget who was gone a second ago and still is: another user's client may have that port next."""
        if time.monotonic() < self._looked + 1:
            return
        gone = self._users.keys() - {each["addr"] for each in self._admin.client_list()}
        for address in gone & self._gone:
            del self._users[address]
        self._gone = gone - self._gone
        self._looked = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._admin.close()


def _plain(argument: bytes) -> bytes:
    return (
        argument.decode("latin-1")
        .encode("ascii", "backslashreplace")
        .decode("unicode_escape")
        .encode("latin-1")
    )
