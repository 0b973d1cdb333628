"""A Redis Cluster of three masters, each with a third of the slots."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import redis

from service.demo.ports import free_port, reserve
from service.demo.servers import EmbeddedRedis

_NODES = 3
_SLOTS = 16_384
_BUS = 10_000
"""So many ports above a node's own its bus listens."""

_LAST_PORT = 22_000
"""Of a node, so that its bus's is none that outgoing connections are given."""


def node_port() -> int:
    """A port for a node of a cluster, reserved as its bus's is, which no outgoing connection gets."""
    while True:
        port = free_port()
        if port < _LAST_PORT and reserve(port + _BUS):
            return port


class EmbeddedRedisCluster:
    """Three servers; ready when each of them knows all slots. A context manager.

    Attributes:
        nodes: the servers.
        url: of one of them.

    Raises:
        EmbeddedServerError: no Redis is installed, or it does not start.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        try:
            self.nodes = [self._start_node() for _ in range(_NODES)]
            self.url = self.nodes[0].url
            self._form()
        except BaseException:
            self.stop()
            raise

    def _start_node(self) -> EmbeddedRedis:
        options: dict[str, str | int] = {"cluster-enabled": "yes", "cluster-node-timeout": 15_000}
        return self._stack.enter_context(EmbeddedRedis(port=node_port(), options=options))

    def _form(self) -> None:
        clients = [self._stack.enter_context(redis.Redis(port=node.port)) for node in self.nodes]
        bounds = [_SLOTS * i // _NODES for i in range(_NODES + 1)]
        for client, first, end in zip(clients, bounds, bounds[1:], strict=False):
            client.execute_command("CLUSTER", "ADDSLOTS", *range(first, end))
        for epoch, client in enumerate(clients, 1):
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node in self.nodes[1:]:
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", node.port)
        for node, client in zip(self.nodes, clients, strict=True):
            node.wait_until(lambda client=client: _complete(client))

    def stop(self) -> None:
        """Stop all servers."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _complete(client: redis.Redis) -> bool:
    logged = client.execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in logged and f"cluster_known_nodes:{_NODES}".encode() in logged


def redis_settings(server: EmbeddedRedis | EmbeddedRedisCluster, prefix: str) -> dict[str, Any]:
    """The section `redis` of a configuration."""
    return {"url": server.url, "prefix": prefix, "cluster": isinstance(server, EmbeddedRedisCluster)}
