"""Real servers for the tests; a missing one skips locally and fails in CI."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from service.clients import build_redis
from service.embedded import EmbeddedBroker, EmbeddedRedis
from service.errors import EmbeddedServerError
from service.settings import RedisSettings
from service.store.connection import Connection


def _missing(error: EmbeddedServerError) -> None:
    if os.environ.get("CI") == "true":
        raise error
    pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    """A Redis of the test session."""
    try:
        server = EmbeddedRedis()
    except EmbeddedServerError as error:
        _missing(error)
        return
    with server:
        yield server


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """A Kafka-compatible broker of the test session."""
    try:
        server = EmbeddedBroker()
    except EmbeddedServerError as error:
        _missing(error)
        return
    with server:
        yield server


@pytest.fixture
def connection(redis_server: EmbeddedRedis) -> Iterator[Connection]:
    """A connection with a prefix of its own."""
    client = build_redis(RedisSettings(url=SecretStr(redis_server.url)))
    yield Connection(client, f"test-{secrets.token_hex(6)}")
    client.close()
