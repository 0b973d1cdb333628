"""Stands in for kube-proxy and the cluster's DNS: connections to a Service reach one of its ready pods."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from control_plane import Api, Object, RejectedError

_LOOK_SECONDS = 0.3
_CONNECT_SECONDS = 5.0

Address = tuple[str, int]


class Services:
    """Addresses and names of Services, while this is a context.

    Args:
        api: of the cluster.
        hosts: where names are written, as in /etc/hosts.
    """

    def __init__(self, api: Api, hosts: Path) -> None:
        self._api = api
        self._hosts = hosts
        self._listeners: dict[Address, socket.socket] = {}
        self._ready: dict[Address, list[Address]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.failures: list[str] = []
        hosts.write_text("127.0.0.1 localhost\n")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()
        for listener in self._listeners.values():
            listener.close()

    def _follow(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            try:
                self._look()
            except (OSError, RejectedError) as error:
                self.failures.append(repr(error))

    def _look(self) -> None:
        slices = self._api.items("/apis/discovery.k8s.io/v1/endpointslices")
        lines = ["127.0.0.1 localhost"]
        ready: dict[Address, list[Address]] = {}
        for service in self._api.items("/api/v1/services"):
            name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
            names = f"{name}.{namespace}.svc.cluster.local {name}.{namespace}.svc {name}.{namespace} {name}"
            address = service["spec"].get("clusterIP")
            if address == "None":
                lines += [f"{one} {names}" for one in sorted(_addresses(slices, service))]
                continue
            lines.append(f"{address} {names}")
            for port in service["spec"]["ports"]:
                ready[address, port["port"]] = list(_behind(slices, service, port.get("name")))
        self._ready = ready
        text = "\n".join(lines) + "\n"
        if self._hosts.read_text() != text:
            self._hosts.write_text(text)
        for at in ready.keys() - self._listeners.keys():
            self._listen(at)
        for at in self._listeners.keys() - ready.keys():
            self._listeners.pop(at).close()

    def _listen(self, at: Address) -> None:
        listener = socket.create_server(at, backlog=64)
        self._listeners[at] = listener
        threading.Thread(target=self._accept, args=(at, listener), daemon=True).start()

    def _accept(self, at: Address, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                # The Service is gone.
                return
            threading.Thread(target=self._connect, args=(at, client), daemon=True).start()

    def _connect(self, at: Address, client: socket.socket) -> None:
        with client:
            behind = self._ready.get(at)
            if not behind:
                return
            try:
                server = socket.create_connection(random.choice(behind), _CONNECT_SECONDS)
            except OSError:
                return
            with server:
                server.settimeout(None)
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Hand on what is read until one side ends."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for side in (source, target):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)


def _of(slices: list[Object], service: Object) -> Iterator[Object]:
    for one in slices:
        metadata = one["metadata"]
        if metadata["namespace"] == service["metadata"]["namespace"]:
            name = metadata.get("labels", {}).get("kubernetes.io/service-name")
            if name == service["metadata"]["name"]:
                yield one


def _addresses(slices: list[Object], service: Object) -> Iterator[str]:
    """Addresses of the ready pods of a Service."""
    for one in _of(slices, service):
        for endpoint in one["endpoints"] or []:
            if endpoint["conditions"].get("ready"):
                yield from endpoint["addresses"]


def _behind(slices: list[Object], service: Object, port: str | None) -> Iterator[Address]:
    """Where the ready pods of a Service listen for one of its ports."""
    for one in _of(slices, service):
        for open_port in one["ports"] or []:
            if (open_port.get("name") or None) == (port or None):
                yield from ((address, open_port["port"]) for address in _addresses([one], service))
