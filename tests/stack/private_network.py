"""Networks that nobody else is on: bridges and a name server, in a network namespace of their own.

Needs root. All of it is gone with the process that holds the namespace, and those that joined.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from service.demo.servers import Child
from service.domain.errors import EmbeddedServerError

_CLONE_NEWNET = 0x40000000
_ADDRESS = "10.213.{}.{}"
_GATEWAY = 1
_FIRST = 10


class PrivateNetworks:
    """Networks, a gateway that is on all of them, and the addresses of who may join.

    Args:
        folder: for the log of the name server.
        members: the networks of everyone who may join, by their names.

    Raises:
        EmbeddedServerError: this process may not make namespaces.
    """

    def __init__(self, folder: Path, members: Mapping[str, Sequence[str]]) -> None:
        if os.geteuid() != 0:
            raise EmbeddedServerError("namespaces need root")
        numbers: dict[str, int] = {}
        self._addresses: dict[str, list[str]] = {}
        for host, (member, networks) in enumerate(members.items(), _FIRST):
            self._addresses[member] = [
                _ADDRESS.format(numbers.setdefault(network, len(numbers)), host) for network in networks
            ]
        self._stack = ExitStack()
        server = Path(__file__).with_name("name_server.py")
        command = ["unshare", "--net", sys.executable, str(server), json.dumps(self._addresses)]
        with (folder / "name-server.log").open("wb") as log:
            self._gateway = self._stack.enter_context(Child("the name server", command, output=log))
        try:
            self._gateway.wait_until(self._is_apart)
            for number in numbers.values():
                self._add_bridge(number)
        except BaseException:
            self._stack.close()
            raise
        self._caller = self._stack.enter_context(ThreadPoolExecutor(1, initializer=self._join))

    def name_server(self, member: str) -> str:
        """The address where a member asks for names."""
        return f"{self._addresses[member][0].rpartition('.')[0]}.{_GATEWAY}"

    def joining(self, member: str) -> list[str]:
        """Lines of a shell script that joins, in a network namespace of its own."""
        lines, gateway = ["ip link set lo up"], self._gateway.process.pid
        for address in self._addresses[member]:
            number, host = address.split(".")[2:]
            outer, inner = f"v{number}x{host}", f"eth{number}"
            lines += [
                f"ip link add {inner} type veth peer name {outer} netns {gateway}",
                f"ip addr add {address}/24 dev {inner}",
                f"ip link set {inner} up",
                f"nsenter -t {gateway} --net ip link set {outer} master br{number} up",
            ]
        return lines

    def get(self, member: str, port: int, path: str) -> tuple[int, str]:
        """Status and body of an HTTP request from the gateway to a member; 0 when nobody answers."""

        def ask() -> tuple[int, str]:
            try:
                url = f"http://{self._addresses[member][0]}:{port}{path}"
                with urllib.request.urlopen(url, timeout=30) as reply:
                    return reply.status, reply.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
            except OSError:
                return 0, ""

        return self._caller.submit(ask).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def _namespace(self) -> Path:
        return Path(f"/proc/{self._gateway.process.pid}/ns/net")

    def _is_apart(self) -> bool:
        return self._namespace.stat().st_ino != Path("/proc/self/ns/net").stat().st_ino

    def _add_bridge(self, number: int) -> None:
        for words in (
            f"link add br{number} type bridge",
            f"link set br{number} up",
            f"addr add {_ADDRESS.format(number, _GATEWAY)}/24 dev br{number}",
        ):
            inside = ["nsenter", "-t", str(self._gateway.process.pid), "--net"]
            subprocess.run([*inside, "ip", *words.split()], check=True, capture_output=True, timeout=60)

    def _join(self) -> None:
        """Have the sockets that this thread opens be on the gateway."""
        with self._namespace.open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "cannot join the gateway's namespace")
