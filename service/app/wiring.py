"""Makes the stores that several parts of a process need, from its settings."""

from __future__ import annotations

from collections.abc import Callable

from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.store.connection import Connection
from service.store.keys import ModelKeys
from service.store.requests import RequestStore
from service.store.topics import TopicProgress


def model_keys(settings: Settings, model: str, space: CellSpace) -> ModelKeys:
    """Names of one model's keys; the layout changes with whatever changes the meaning of stored shards."""
    layout = space.fingerprint(settings.models[model].traffic_half_life_days)
    return ModelKeys(settings.redis.prefix, model, layout)


def request_store(settings: Settings, connection: Connection, keys: ModelKeys) -> RequestStore:
    """The label requests of one model."""
    vendors = settings.vendors_of(keys.model)
    return RequestStore(
        connection,
        keys,
        closed_seconds=int(settings.bounds.correction_days * 86_400),
        outcome_limit=settings.bounds.outcomes,
        claiming=[name for name, vendor in vendors.items() if vendor.token_sha256],
    )


def request_stores(settings: Settings, connection: Connection) -> dict[str, RequestStore]:
    """The label requests of every model."""
    return {
        name: request_store(settings, connection, model_keys(settings, name, settings.cell_space(name)))
        for name in settings.models
    }


def topic_progress(
    settings: Settings, connection: Connection, key: Callable[[ModelKeys, int], str]
) -> TopicProgress:
    """How far all models together have come in a topic.

    Args:
        settings: of the process.
        connection: to Redis.
        key: where a model keeps that, of a partition.
    """
    keys = [model_keys(settings, name, settings.cell_space(name)) for name in settings.models]
    return TopicProgress(connection, lambda partition: [key(each, partition) for each in keys])
