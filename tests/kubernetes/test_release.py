"""What the README of the chart promises, on a real control plane, while predictions keep coming."""

from __future__ import annotations

import copy
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from harness import wait_for
from kubelet import NODES
from release import Release, Watch, seconds_of
from rendering import ROLES, changed

PAGE_PORT = 8400
MINUTE = 60.0
REPLICAS = 2
"""Of consumers of predictions; autoscaling without a number begins with 1."""


@pytest.fixture(scope="module")
def release(
    new_release: Callable[..., Release], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    release = new_release("release")
    release.apply("install", tmp_path_factory.mktemp("values"))
    yield release
    release.helm("uninstall", "--wait")


def with_settings(release: Release, **changes: Any) -> dict[str, Any]:
    """The values with other settings of the model, which restarts all pods."""
    values = copy.deepcopy(release.values)
    values["config"]["models"]["sorter"] |= changes
    return values


def misspelt(release: Release) -> dict[str, Any]:
    """Values that Helm takes, but whose assessment is of a grouping that does not exist."""
    wrong = {"task": "identification", "grouping": "regoin", "budget": {"labels": 50, "per_days": 1}}
    return with_settings(release, assessments={"wrong": wrong})


def assert_undisturbed(release: Release, watch: Watch) -> None:
    """Readers were answered, every role was always there, and every prediction is counted once."""
    assert watch.requests > 10
    assert watch.failed == []
    assert set(watch.fewest) == set(ROLES)
    assert min(watch.fewest.values()) >= 1
    wait_for(
        lambda: release.predictions() == release.sent, seconds=MINUTE, what="all predictions are counted"
    )


def test_installing_waits_until_every_role_is_available(release: Release) -> None:
    for role in ROLES:
        status = release.deployment(role)["status"]
        assert status["availableReplicas"] == status["replicas"] > 0, role


def test_the_test_of_the_chart_passes(release: Release) -> None:
    assert "Phase:          Succeeded" in release.helm("test")[1]


def test_pods_of_a_role_are_spread_over_the_nodes(release: Release) -> None:
    for role in ("predictions", "scheduler", "web"):
        assert {pod["spec"]["nodeName"] for pod in release.pods(role)} == set(NODES), role


def test_only_the_web_role_serves_the_page_to_others(release: Release) -> None:
    def is_open(role: str) -> bool:
        with (
            suppress(OSError),
            socket.create_connection((release.ready(role)[0]["status"]["podIP"], PAGE_PORT), timeout=5),
        ):
            return True
        return False

    assert [role for role in ROLES if is_open(role)] == ["web"]


def test_an_upgrade_disturbs_nobody(release: Release, tmp_path: Path) -> None:
    before = release.uids()
    with Watch(release) as watch:
        release.apply("upgrade", tmp_path, with_settings(release, alerts={"min_accuracy": 0.85}))
    assert not before & release.uids(), "every pod has the new configuration"
    assert_undisturbed(release, watch)


def test_rolling_back_disturbs_nobody(release: Release) -> None:
    before = release.uids()
    with Watch(release) as watch:
        release.helm("rollback", "1", "--wait", "--timeout", "5m")
    assert not before & release.uids()
    assert_undisturbed(release, watch)


def test_draining_a_node_disturbs_nobody(release: Release) -> None:
    node = release.pods("web")[0]["spec"]["nodeName"]
    with Watch(release) as watch:
        release.kubectl("drain", node, "--ignore-daemonsets", "--timeout", "2m")
        wait_for(
            lambda: all(release.ready(role) == release.pods(role) for role in ROLES),
            seconds=MINUTE,
            what="evicted pods run elsewhere",
        )
    release.kubectl("uncordon", node)
    assert node not in {pod["spec"]["nodeName"] for role in ROLES for pod in release.pods(role)}
    assert_undisturbed(release, watch)


def test_a_misspelt_reference_fails_the_upgrade_at_once_and_says_why(
    release: Release, tmp_path: Path
) -> None:
    before = release.uids()
    seconds = seconds_of(lambda: release.apply("upgrade", tmp_path, misspelt(release), check=False))
    assert seconds < MINUTE
    assert release.uids() == before, "no pod of the release has changed"
    job = f"{release.full_name}-topics"
    assert "models.sorter.assessments.wrong" in release.kubectl("logs", f"job/{job}")
    events = release.kubectl("get", "events", "--field-selector", "involvedObject.kind=Job")
    assert "PodFailurePolicy" in events


def test_autoscaling_begins_with_the_replicas_that_run(release: Release, tmp_path: Path) -> None:
    with Watch(release) as watch:
        release.apply("upgrade", tmp_path, changed(release.values, "predictions.autoscaling.by", "hpa"))
    assert watch.replicas == {REPLICAS}


def test_helm_refuses_to_upgrade_what_kubectl_has_scaled(release: Release, tmp_path: Path) -> None:
    workload = f"deployment/{release.full_name}-predictions"
    release.kubectl("scale", workload, f"--replicas={REPLICAS - 1}")
    code, said = release.apply("upgrade", tmp_path, check=False)
    assert code != 0
    assert re.search(r"conflict.*\.spec\.replicas", said, re.DOTALL)
    release.kubectl("scale", workload, f"--replicas={REPLICAS}")
    release.apply("upgrade", tmp_path)


def test_another_kind_stops_a_role_for_half_a_minute_and_loses_nothing(
    release: Release, tmp_path: Path
) -> None:
    with Watch(release) as watch:
        release.apply("upgrade", tmp_path, changed(release.values, "predictions.kind", "StatefulSet"))
    assert watch.failed == []
    assert watch.seconds_without["predictions"] <= MINUTE / 2
    wait_for(
        lambda: release.predictions() == release.sent, seconds=MINUTE, what="all predictions are counted"
    )


def test_removing_a_release_leaves_nothing(new_release: Callable[..., Release], tmp_path: Path) -> None:
    # On OpenShift, users of pods are not the chart's to choose; a dot is allowed in a release's name.
    release = new_release("my.release", pod={"runAs": None})
    release.apply("install", tmp_path)
    release.helm("test")
    release.helm("uninstall", "--wait")
    kinds = "deployment,statefulset,job,pod,service,configmap,serviceaccount,networkpolicy,pdb"
    chosen = (kinds, "--selector", "app.kubernetes.io/instance=my.release", "--output=name")
    # Helm does not wait for pods, which have a time of grace.
    wait_for(lambda: release.kubectl("get", *chosen) == "", seconds=MINUTE, what="nothing is left")


def test_what_a_failed_hook_leaves_is_deleted_as_the_readme_says(
    new_release: Callable[..., Release], tmp_path: Path
) -> None:
    release = new_release("broken")
    assert release.apply("install", tmp_path, misspelt(release), check=False)[0] != 0
    release.helm("uninstall", "--wait")
    kinds = "job,pod,configmap,serviceaccount,networkpolicy"
    chosen = (kinds, "--selector", "app.kubernetes.io/instance=broken")
    assert f"job.batch/{release.full_name}-topics" in release.kubectl("get", *chosen, "--output=name")
    release.kubectl("delete", *chosen)
    assert release.kubectl("get", *chosen, "--output=name") == ""


def test_the_restart_after_the_change_of_a_secret_reaches_every_role(release: Release) -> None:
    chosen = ("deployment,statefulset", "--selector", "app.kubernetes.io/instance=release")
    restarted = release.kubectl("rollout", "restart", *chosen).splitlines()
    names = {line.partition(" ")[0].partition("/")[2] for line in restarted if line.endswith(" restarted")}
    assert names == {f"{release.full_name}-{role}" for role in ROLES}
