"""Builders of the Kafka and Redis clients; called from the command line alone."""

from __future__ import annotations

from typing import Any

import redis
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.settings import KafkaSettings, RedisSettings


def build_redis(settings: RedisSettings) -> redis.Redis:
    """A Redis client that never retries by itself: a write whose reply was lost is not repeated blindly."""
    return redis.Redis.from_url(
        settings.url.get_secret_value(),
        retry=Retry(NoBackoff(), 0),
        socket_timeout=settings.timeout_seconds,
        socket_connect_timeout=settings.timeout_seconds,
        health_check_interval=0,
    )


def build_consumer(settings: KafkaSettings, *, group: str) -> Any:
    """A consumer of bytes: deserializers that raise would make poll() spin.

    Args:
        settings: the Kafka part of the settings.
        group: suffix of the consumer group's name.
    """
    return KafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers,
        group_id=f"{settings.group_prefix}.{group}",
        client_id=f"{settings.group_prefix}-{group}",
        enable_auto_commit=False,
        auto_offset_reset=settings.start,
        max_poll_records=settings.max_poll_records,
        session_timeout_ms=int(settings.session_timeout_seconds * 1000),
        heartbeat_interval_ms=int(settings.session_timeout_seconds * 1000 / 3),
    )


def build_reader(settings: KafkaSettings) -> Any:
    """A consumer of bytes that belongs to no group: it is told what to read, and commits nothing."""
    return KafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers,
        client_id=f"{settings.group_prefix}-reader",
        enable_auto_commit=False,
    )


def build_producer(settings: KafkaSettings, *, name: str, delivery_seconds: float = 120.0) -> Any:
    """An idempotent producer that waits for all in-sync replicas.

    Args:
        settings: the Kafka part of the settings.
        name: suffix of the client id.
        delivery_seconds: how long the client keeps trying to send a record, under one sequence number.
    """
    return KafkaProducer(
        bootstrap_servers=settings.bootstrap_servers,
        client_id=f"{settings.group_prefix}-{name}",
        acks="all",
        linger_ms=5,
        delivery_timeout_ms=int(delivery_seconds * 1000),
    )


def build_admin(settings: KafkaSettings) -> Any:
    """A client that creates topics."""
    return KafkaAdminClient(
        bootstrap_servers=settings.bootstrap_servers, client_id=f"{settings.group_prefix}-admin"
    )
