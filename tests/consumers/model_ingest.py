"""The part of ingest that checks a model's messages, without a server."""

from __future__ import annotations

from consumers.ingest import ModelIngest
from service.config.model import DriftSettings
from service.config.settings import RedisSettings
from service.domain.cells import CellSpace
from service.domain.groupings import Everything
from service.domain.pool import PoolSizes
from service.domain.pool_key import PoolKey
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.shards import ShardStore

CLASSES = ("7", "1", "ü", "x" * 256)


def ingest() -> ModelIngest:
    """The checks of a model with these classes; it never connects to its Redis."""
    space = CellSpace(CLASSES, (), {"all": Everything("all")})
    connection = Connection(build_redis(RedisSettings()), "p")
    keys = ModelKeys("p", "digits", "0")
    return ModelIngest(
        space,
        shards=ShardStore(
            connection,
            keys,
            space,
            pool_ids={},
            pool_sizes=PoolSizes({}, 1),
            pool_key=PoolKey(bytes(16), "digits"),
            decay=0.0,
            draw_decay=0.0,
            drift=DriftSettings(),
        ),
        pool_key=PoolKey(bytes(16), "digits"),
        payload_bytes=100_000,
        keep_probabilities=True,
    )
