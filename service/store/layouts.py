"""Layouts: fingerprints of classes and half-lives under which Redis holds traffic and pools."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from service.store.connection import Connection, translate_redis_errors
from service.store.keys import LAYOUT_DIGITS, ModelKeys
from service.store.traffic_pages import stored_predictions

_SCANNED = 1_000
"""Keys that Redis scans before it answers other clients."""


@dataclass(frozen=True)
class StoredLayout:
    """Traffic and pool of one model under one layout.

    Attributes:
        layout: as in the names of the keys.
        partitions: those with a shard.
        predictions: counted in its traffic.
        pooled: items in its pool.
    """

    model: str
    layout: str
    partitions: tuple[int, ...]
    predictions: int
    pooled: int
    keys: tuple[str, ...]


class LayoutStore:
    """The layouts of all models, including those that no configuration uses any more."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[StoredLayout]:
        """All layouts, sorted by model and layout.

        It scans all keys, a thousand at a time, so that Redis answers other clients meanwhile.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        prefix = self._connection.prefix
        name = re.compile(
            rf"{re.escape(prefix)}:{{(?P<model>[^{{}}]+)}}:(?P<layout>[0-9a-f]{{{LAYOUT_DIGITS}}}):"
            r"(?:partitions|drift|(?:shard|traffic|sums|pool|items|drawn|marks):\d+)"
        )
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        with translate_redis_errors():
            for key in self._connection.client.scan_iter(match=f"{prefix}:{{*}}:*:*", count=_SCANNED):
                if parts := name.fullmatch(key.decode()):
                    found[parts["model"], parts["layout"]].add(parts[0])
        return [self._stored(model, layout, names) for (model, layout), names in sorted(found.items())]

    def _stored(self, model: str, layout: str, names: set[str]) -> StoredLayout:
        keys = ModelKeys(self._connection.prefix, model, layout)
        partitions = sorted(int(name.rpartition(":")[2]) for name in names if ":shard:" in name)
        with self._connection.pipeline(transaction=True) as pipeline:
            for partition in partitions:
                pipeline.hgetall(keys.traffic(partition))
                pipeline.hlen(keys.items(partition))
            replies = pipeline.execute()
        return StoredLayout(
            model,
            layout,
            tuple(partitions),
            predictions=sum(map(stored_predictions, replies[::2])),
            pooled=sum(replies[1::2]),
            keys=tuple(sorted(names)),
        )

    def remove(self, layouts: Iterable[StoredLayout]) -> None:
        """Remove layouts that no consumer uses now; all in one step, on a cluster one after the other.

        Raises:
            Unavailable: Redis cannot answer now; removing again is harmless.
        """
        each = [stored.keys for stored in layouts if stored.keys]
        # Models may be on several servers of a cluster; the keys of one are together.
        steps = each if self._connection.clustered else [sum(each, ())]
        with translate_redis_errors():
            for keys in filter(None, steps):
                self._connection.client.unlink(*keys)
