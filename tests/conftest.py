"""Real servers for the tests; a missing one skips locally and fails in CI."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from harness import Deploy, Deployment
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


def _deploying(folder: Path, broker: EmbeddedBroker, redis_server: EmbeddedRedis) -> Iterator[Deploy]:
    with ExitStack() as stack:

        def deploy(**changes: object) -> Deployment:
            options = {"broker": broker.bootstrap_server, "redis_url": redis_server.url} | changes
            return stack.enter_context(closing(Deployment(folder, **options)))

        yield deploy


@pytest.fixture
def deploy(tmp_path: Path, broker: EmbeddedBroker, redis_server: EmbeddedRedis) -> Iterator[Deploy]:
    """Makes deployments of one test, on the session's servers unless others are given."""
    yield from _deploying(tmp_path, broker, redis_server)


@pytest.fixture(scope="module")
def module_deploy(
    tmp_path_factory: pytest.TempPathFactory, broker: EmbeddedBroker, redis_server: EmbeddedRedis
) -> Iterator[Deploy]:
    """Makes deployments that the tests of one module share."""
    yield from _deploying(tmp_path_factory.mktemp("loop"), broker, redis_server)
