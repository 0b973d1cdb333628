"""A real API server admits what the chart renders, under the restricted Pod Security Standard."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import Api, ControlPlane, Object, RejectedError
from rendering import CASES, Chart, Objects

LEVEL = "restricted"


def namespace(api: Api, name: str, priority: str | None) -> None:
    """A namespace where pods have to be restricted, and workloads whose pods are not cause a warning."""
    labels = {f"pod-security.kubernetes.io/{mode}": LEVEL for mode in ("enforce", "warn")}
    metadata = {"name": name, "labels": labels}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, namespace="")
    # A controller makes this account in a whole cluster.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    api.create(account, namespace=name)
    if priority:
        thing = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        api.create(thing | {"metadata": {"name": priority}}, namespace="")


class Rendered:
    """What one values file renders, in a namespace of its own, where its service accounts exist."""

    def __init__(self, api: Api, chart: Chart, values: Path) -> None:
        given: dict[str, Any] = yaml.safe_load(values.read_text())
        self._api = api
        self._namespace = f"values-{values.stem}"
        self.objects: Objects = chart.objects(given)
        namespace(api, self._namespace, given.get("pod", {}).get("priorityClassName"))
        for thing in self.objects.of("ServiceAccount").values():
            self._api.create(self._here(thing), namespace=self._namespace)

    def _here(self, thing: Object) -> Object:
        # Helm has rendered for a namespace of another name.
        thing = copy.deepcopy(thing)
        if "namespace" in thing["metadata"]:
            thing["metadata"]["namespace"] = self._namespace
        return thing

    def others(self) -> list[Object]:
        """All but the service accounts."""
        return [self._here(thing) for thing in self.objects if thing["kind"] != "ServiceAccount"]

    def pods(self) -> list[Object]:
        """A pod of every template, as its controller would create it."""
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"generateName": "pod-", "labels": labels},
                "spec": spec,
            }
            for labels, spec in self.objects.pods()
        ]

    def admit(self, thing: Object) -> tuple[str, ...]:
        """Have an object admitted, and not kept; the warnings."""
        return self._api.create(thing, namespace=self._namespace, dry_run=True).warnings


@pytest.fixture(scope="module", params=CASES, ids=lambda path: str(path.stem))
def rendered(request: pytest.FixtureRequest, api_server: ControlPlane, chart: Chart) -> Rendered:
    return Rendered(api_server.api, chart, request.param)


def test_every_object_is_admitted_without_a_warning(rendered: Rendered) -> None:
    warnings = {
        f"{thing['kind']}/{thing['metadata']['name']}": rendered.admit(thing) for thing in rendered.others()
    }
    assert len(warnings) >= 8
    assert {name: said for name, said in warnings.items() if said} == {}


def test_every_pod_is_admitted_where_pods_have_to_be_restricted(rendered: Rendered) -> None:
    pods = rendered.pods()
    assert len(pods) >= 4
    assert [rendered.admit(pod) for pod in pods] == [()] * len(pods)


def test_a_pod_that_may_run_as_root_is_rejected(rendered: Rendered) -> None:
    pod = copy.deepcopy(rendered.pods()[0])
    del pod["spec"]["securityContext"]["runAsNonRoot"]
    with pytest.raises(RejectedError, match=f'violates PodSecurity "{LEVEL}:latest".*runAsNonRoot'):
        rendered.admit(pod)


def test_a_workload_whose_pods_are_not_restricted_causes_a_warning(rendered: Rendered) -> None:
    workload = copy.deepcopy(next(iter(rendered.objects.workloads().values())))
    del workload["spec"]["template"]["spec"]["securityContext"]["seccompProfile"]
    (warning,) = rendered.admit(rendered._here(workload))
    assert "seccompProfile" in warning


def test_an_object_with_a_key_that_kubernetes_does_not_know_is_rejected(rendered: Rendered) -> None:
    workload = copy.deepcopy(next(iter(rendered.objects.workloads().values())))
    workload["spec"]["replica"] = 2
    with pytest.raises(RejectedError, match=r'unknown field "spec\.replica"'):
        rendered.admit(rendered._here(workload))
