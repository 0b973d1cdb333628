"""Makes the stores that several parts of a process need, from its settings."""

from __future__ import annotations

import socket
from collections.abc import Callable

from service.config.settings import Settings
from service.store.client import build_redis
from service.store.cohorts import CohortStore
from service.store.connection import Connection
from service.store.joins import JoinStore
from service.store.keys import ModelKeys
from service.store.labels import LabelStore
from service.store.lease import shared_hash_key
from service.store.requests import RequestStore
from service.store.topics import TopicProgress


def connect(settings: Settings) -> Connection:
    """A connection to Redis.

    Raises:
        ConfigurationError: a file of the settings cannot be used.
        Unavailable: no node of a cluster can be reached. A Redis alone is reached when it is used.
    """
    return Connection(build_redis(settings.redis), settings.redis.prefix)


def process_name(settings: Settings) -> str:
    """Name of this process for people: host and port of its metrics, which a restart does not change."""
    return f"{socket.gethostname()}:{settings.monitoring.port}"


def pool_hash_key(settings: Settings, connection: Connection) -> bytes:
    """The hash key of all pools: the configured one, else the one that all processes share through Redis.

    Raises:
        Unavailable: Redis cannot answer now.
    """
    return settings.hash_key_bytes() or shared_hash_key(connection)


def model_keys(settings: Settings, model: str) -> ModelKeys:
    """Names of one model's keys; the layout changes with whatever changes the meaning of stored shards."""
    layout = settings.cell_space(model).fingerprint(settings.models[model].traffic_half_life_days)
    return ModelKeys(settings.redis.prefix, model, layout)


def request_store(settings: Settings, connection: Connection, model: str) -> RequestStore:
    """The label requests of one model."""
    vendors = settings.vendors_of(model)
    return RequestStore(
        connection,
        model_keys(settings, model),
        closed_seconds=correction_seconds(settings),
        outcome_limit=settings.bounds.outcomes,
        claiming=[name for name, vendor in vendors.items() if vendor.token_sha256],
    )


def label_store(settings: Settings, connection: Connection, model: str) -> LabelStore:
    """The labels of one model."""
    return LabelStore(
        connection,
        model_keys(settings, model),
        closed_seconds=correction_seconds(settings),
        outcome_limit=settings.bounds.outcomes,
        several=settings.models[model].labels_per_item.several,
    )


def join_store(settings: Settings, connection: Connection, model: str) -> JoinStore:
    """The labels of one model that nobody requested."""
    return JoinStore(
        connection,
        model_keys(settings, model),
        join_items=settings.bounds.join_items,
        join_seconds=settings.bounds.join_days * 86_400,
        outcome_limit=settings.bounds.outcomes,
    )


def cohort_store(settings: Settings, connection: Connection, model: str) -> CohortStore | None:
    """The predictions of one model that wait for such labels; None if it takes none."""
    rule = settings.models[model].unrequested_labels
    if rule is None:
        return None
    return CohortStore(
        connection,
        model_keys(settings, model),
        rule,
        join_items=settings.bounds.join_items,
        join_seconds=settings.bounds.join_days * 86_400,
        outcome_limit=settings.bounds.outcomes,
    )


def correction_seconds(settings: Settings) -> int:
    """How long a label may be corrected or retracted."""
    return int(settings.bounds.correction_days * 86_400)


def topic_progress(
    settings: Settings, connection: Connection, hashes: Callable[[ModelKeys], Callable[[int], str]]
) -> TopicProgress:
    """Progress of all models in a topic; `hashes` gives a model's keys that hold it, by partition."""
    keys = [hashes(model_keys(settings, name)) for name in settings.models]
    return TopicProgress(connection, lambda partition: [key(partition) for key in keys])
