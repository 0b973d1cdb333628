"""Real servers for the tests; a missing one skips locally and fails in CI.

Two options choose which: `--broker apache` runs on Apache Kafka, `--redis cluster` on a Redis Cluster.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import TypeVar

import hypothesis
import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, Deployment
from missing_programs import pytest_terminal_summary  # noqa: F401 - a hook of pytest
from redis_cluster import EmbeddedRedisCluster
from store_site import redis_settings
from wires import Wires

from service.demo.servers import EmbeddedBroker, EmbeddedRedis
from service.domain.errors import EmbeddedServerError
from service.store.client import build_redis
from service.store.connection import Connection

Server = TypeVar("Server", bound=AbstractContextManager[object])

WAITING = ("browser", "client", "dead_letters", "demo", "fuzz", "loop", "prometheus", "stack", "vendors")
"""Folders of tests that wait for other processes more than they compute."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker", choices=["bundled", "apache"], default="bundled", help="the Kafka that tests run on"
    )
    parser.addoption(
        "--redis", choices=["standalone", "cluster"], default="standalone", help="the Redis that tests run on"
    )
    parser.addoption("--pictures", type=Path, help="the folder for a picture of every page that tests show")


def pytest_configure() -> None:
    # Examples that take long on a busy machine say nothing of the code.
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of tests that wait and of tests that compute take turns, or cores would be idle for long."""
    waiting: list[list[pytest.Item]] = []
    computing: list[list[pytest.Item]] = []
    for path, of_file in groupby(items, key=lambda item: item.path):
        (waiting if path.parent.name in WAITING else computing).append(list(of_file))
    items[:] = chain.from_iterable(chain.from_iterable(zip_longest(waiting, computing, fillvalue=[])))


def _running(make: Callable[[], Server]) -> Iterator[Server]:
    try:
        server = make()
    except EmbeddedServerError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedRedis | EmbeddedRedisCluster]:
    """A Redis of the test session."""
    clustered = request.config.getoption("--redis") == "cluster"
    yield from _running(EmbeddedRedisCluster if clustered else EmbeddedRedis)


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    """One broker of Apache Kafka, of the test session."""
    yield from _running(ApacheKafka)


@pytest.fixture(scope="session")
def _bundled_broker() -> Iterator[EmbeddedBroker]:
    yield from _running(EmbeddedBroker)


@pytest.fixture(scope="session")
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """Where the Kafka of the test session is, as host:port."""
    if request.config.getoption("--broker") == "apache":
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        return kafka.bootstrap_servers
    broker: EmbeddedBroker = request.getfixturevalue("_bundled_broker")
    return broker.bootstrap_server


@pytest.fixture
def own_broker(request: pytest.FixtureRequest) -> Iterator[tuple[str, ApacheKafka | EmbeddedBroker]]:
    """A broker of this test alone, which it may harm; where it is, and itself."""
    if request.config.getoption("--broker") == "apache":
        for kafka in _running(ApacheKafka):
            yield kafka.bootstrap_servers, kafka
    else:
        for broker in _running(EmbeddedBroker):
            yield broker.bootstrap_server, broker


@pytest.fixture(scope="session")
def wires() -> Iterator[Wires]:
    """Where wires turn that are each of one test."""
    with Wires() as turning:
        yield turning


def _connecting(redis_server: EmbeddedRedis | EmbeddedRedisCluster) -> Iterator[Connection]:
    client = build_redis(redis_settings(redis_server))
    yield Connection(client, f"test-{secrets.token_hex(6)}")
    client.close()


@pytest.fixture
def connection(redis_server: EmbeddedRedis | EmbeddedRedisCluster) -> Iterator[Connection]:
    """A connection with a prefix of its own."""
    yield from _connecting(redis_server)


@pytest.fixture(scope="module")
def module_connection(redis_server: EmbeddedRedis | EmbeddedRedisCluster) -> Iterator[Connection]:
    """A connection with a prefix that the tests of one module share."""
    yield from _connecting(redis_server)


def _deploying(
    folder: Path, bootstrap_servers: str, redis_server: EmbeddedRedis | EmbeddedRedisCluster
) -> Iterator[Deploy]:
    with ExitStack() as stack:

        def deploy(**changes: object) -> Deployment:
            options = {
                "broker": bootstrap_servers,
                "redis_url": redis_server.url,
                "redis_cluster": isinstance(redis_server, EmbeddedRedisCluster),
            } | changes
            return stack.enter_context(closing(Deployment(folder, **options)))

        yield deploy


@pytest.fixture
def deploy(
    tmp_path: Path, bootstrap_servers: str, redis_server: EmbeddedRedis | EmbeddedRedisCluster
) -> Iterator[Deploy]:
    """Makes deployments of one test, on the session's servers unless others are given."""
    yield from _deploying(tmp_path, bootstrap_servers, redis_server)


@pytest.fixture(scope="module")
def module_deploy(
    tmp_path_factory: pytest.TempPathFactory,
    bootstrap_servers: str,
    redis_server: EmbeddedRedis | EmbeddedRedisCluster,
) -> Iterator[Deploy]:
    """Makes deployments that the tests of one module share."""
    yield from _deploying(tmp_path_factory.mktemp("loop"), bootstrap_servers, redis_server)
