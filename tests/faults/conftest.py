"""Servers, and what the command line chooses, for trials with faults."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from checking import check_all
from findings import Findings
from forge import FAKETIME_LIBRARIES, Forge
from kinds import KINDS
from layout import ROLES
from pydantic import SecretStr
from records import Journal
from reference import references_of
from stand import Stand
from trial import Fault, Trial
from wired_kafka import WiredKafka
from wires import Wires
from workload import Workload

from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.domain.errors import EmbeddedServerError
from service.store.client import build_redis
from service.store.connection import Connection

DISK_BYTES = 6 << 20
"""Of the file system that Redis has to itself where its disk fills up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption(
        "--seeds", default="5", help="how many seeds to try, from 0, or which: 100..199 (default: 5)"
    )
    group.addoption("--seed", type=int, help="the one seed to try, as one that failed tells")
    group.addoption("--brokers", type=int, default=1, help="how many brokers there are (1 to 3; default: 1)")
    group.addoption("--fault-records", type=Path, help="file to which what happened is added, as JSON lines")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        metafunc.parametrize(
            "seed", _seeds(metafunc.config.getoption("--seeds")) if chosen is None else [chosen]
        )


def _seeds(found: str) -> range:
    first, dots, last = found.partition("..")
    return range(int(first), int(last) + 1) if dots else range(int(first))


def _missing(what: object) -> None:
    if os.environ.get("CI") == "true":
        raise AssertionError(str(what))
    pytest.skip(str(what))


@pytest.fixture(scope="session")
def kafka(wires: Wires, request: pytest.FixtureRequest) -> Iterator[WiredKafka]:
    """Brokers that all trials share, each trial with topics of its own."""
    try:
        brokers = WiredKafka(wires, brokers=request.config.getoption("--brokers"), clients=len(ROLES))
    except EmbeddedServerError as error:
        _missing(error)
        return
    with brokers:
        yield brokers


@pytest.fixture(scope="session")
def reference_redis() -> Iterator[EmbeddedRedis]:
    """Where references are kept."""
    try:
        server = EmbeddedRedis()
    except EmbeddedServerError as error:
        _missing(error)
        return
    with server:
        yield server


@pytest.fixture(scope="session")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    """Starts processes whose clocks are right."""
    with (
        (tmp_path_factory.mktemp("forge") / "output.log").open("wb") as output,
        Forge(output=output) as started,
    ):
        yield started


@pytest.fixture(scope="session")
def clock_forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    """Starts processes whose clocks can be moved; their monotonic clocks, as everywhere, cannot."""
    if not FAKETIME_LIBRARIES:
        _missing("no libfaketime was found; Debian has it in the package faketime")
    environment = {
        "LD_PRELOAD": str(FAKETIME_LIBRARIES[0]),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_TIMESTAMP_FILE": os.devnull,
    }
    log = tmp_path_factory.mktemp("clock-forge") / "output.log"
    with log.open("wb") as output, Forge(output=output, environment=environment) as started:
        yield started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a small file system of its own."""
    folder = tmp_path / "small-disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        _missing("a file system may not be mounted here; run as root to fill Redis's disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def reference(reference_redis: EmbeddedRedis, tmp_path: Path) -> Iterator[Connection]:
    """A connection with a prefix of its own."""
    client = build_redis(RedisSettings(url=SecretStr(reference_redis.url)))
    yield Connection(client, f"reference-{tmp_path.name}")
    client.flushall()
    client.close()


@pytest.fixture(scope="session")
def journal(request: pytest.FixtureRequest) -> Journal:
    """Where trials are recorded, if they are."""
    return Journal(request.config.getoption("--fault-records"))


Stands = Callable[..., Stand]


@pytest.fixture
def stands(
    tmp_path: Path, wires: Wires, kafka: WiredKafka, request: pytest.FixtureRequest
) -> Iterator[Stands]:
    """Makes deployments, and ends them."""
    with ExitStack() as stack:

        def make(*, moves_clocks: bool = False, fills_disk: bool = False, **options: Any) -> Stand:
            stand = Stand(
                tmp_path,
                wires=wires,
                kafka=kafka,
                forge=request.getfixturevalue("clock_forge" if moves_clocks else "forge"),
                redis_folder=request.getfixturevalue("small_disk") if fills_disk else None,
                **options,
            )
            stack.callback(stand.close)
            return stand

        yield make


@pytest.fixture
def endure(
    stands: Stands, reference: Connection, journal: Journal, request: pytest.FixtureRequest
) -> Callable[..., Findings]:
    """Takes a deployment through faults, checks it at rest, and records what happened."""

    def run(
        faults: list[Fault],
        *,
        seed: int,
        seconds: float = 3.0,
        until: Callable[[Stand], bool] = lambda _: True,
        **options: Any,
    ) -> Findings:
        kinds = [KINDS[fault.kind] for fault in faults]
        stand = stands(
            moves_clocks=any(kind.part == "clock" for kind in kinds),
            fills_disk=any(kind.name == "Redis's disk full" for kind in kinds),
            **options,
        )
        sys.stdout.write("\n".join([f"logs: {stand.folder}", *map(str, faults), ""]))
        workload, findings = Workload(seed, began=time.time()), Findings()
        trial = Trial(stand, workload, faults, seconds=seconds)
        try:
            trial.run(until=until)
            stand.check_gone()
            stand.check_logs()
            references = references_of(
                reference, stand.records("predictions"), workload, registry_url=stand.registry.url
            )
            forgetful = any(kind.forgetful for kind in kinds)
            findings = check_all(stand, references, workload, forgetful=forgetful)
            findings.problems += trial.overdrawn
        except Exception as error:
            findings.problems.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            journal.add(request.node.name, seed, faults, findings)
        assert not findings.problems, "\n".join(findings.problems)
        return findings

    return run
