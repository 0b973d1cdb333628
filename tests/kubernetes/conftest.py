"""A control plane and Helm, as `.ci/kubernetes.sh` has built them: KUBERNETES and HELM name the places."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane, define, is_defined
from harness import wait_for
from kubelet import Kubelet
from pod_processes import Image
from release import Release
from rendering import Chart
from services import Services

from service.demo.servers import EmbeddedRedis


def _place(variable: str) -> Path:
    place = os.environ.get(variable)
    if not place:
        message = f"{variable} is not set; .ci/kubernetes.sh builds what is needed and runs these tests"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return Path(place)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of etcd, the API server and the others."""
    return _place("KUBERNETES")


@pytest.fixture(scope="session")
def helm() -> Path:
    return _place("HELM")


@pytest.fixture(scope="session")
def chart(helm: Path) -> Chart:
    """Renders the chart."""
    return Chart(str(helm))


@pytest.fixture(scope="session")
def api_server(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The API server alone, with the definitions of what operators bring along."""
    definitions = sorted(_place("DEFINITIONS").glob("*.yaml"))
    with ControlPlane(programs, tmp_path_factory.mktemp("api"), whole=False) as plane:
        define(plane.api, definitions)
        wait_for(lambda: is_defined(plane.api, definitions), seconds=60, what="definitions")
        yield plane


@pytest.fixture(scope="session")
def plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A whole control plane with two nodes, where pods run."""
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("image", "pods", "plane"):
        (folder / name).mkdir()
    hosts = folder / "hosts"
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(programs, folder / "plane", whole=True))
        services = stack.enter_context(Services(plane.api, hosts))
        kubelet = stack.enter_context(Kubelet(plane.api, folder / "pods", Image(folder / "image", hosts)))
        yield plane
        assert services.failures + kubelet.failures == [], "what stands in for a cluster has failed itself"


@pytest.fixture(scope="module")
def new_release(
    plane: ControlPlane, helm: Path, bootstrap_servers: str, redis_server: EmbeddedRedis
) -> Callable[..., Release]:
    """Makes a release that is not installed yet: `new_release(name, **changes)`."""

    def make(name: str, **changes: Any) -> Release:
        return Release(plane, helm, name, bootstrap_servers, redis_server.url, **changes)

    return make
