"""Deployments for the loop's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from harness import Deployment

from service.embedded import EmbeddedBroker, EmbeddedRedis

Deploy = Callable[..., Deployment]


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
