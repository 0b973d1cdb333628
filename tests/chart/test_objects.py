"""Objects that belong together: pods, what chooses them, what scales them, what lets traffic through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from rendering import CASES, ROLES, Chart, Object, Objects, case, changed

from service.config.loader import ENVIRONMENT_PREFIX
from service.config.settings import Settings

DEFAULT = case("default")
ALL_CASES = pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)


def _objects(chart: Chart, values: Path) -> Objects:
    return chart.objects(yaml.safe_load(values.read_text()))


def _chooses(selector: Object, labels: Object) -> bool:
    return selector.items() <= labels.items()


@ALL_CASES
def test_every_pod_is_let_in_at_the_restricted_level(chart: Chart, values: Path) -> None:
    """The rules of Kubernetes' Pod Security Standards, of which nothing may be left to a default."""
    pods = list(_objects(chart, values).pods())
    assert len(pods) >= 5
    for _, spec in pods:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"].get("runAsUser") != 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        kinds = {kind for volume in spec.get("volumes", []) for kind in volume if kind != "name"}
        assert kinds <= {"configMap", "projected", "emptyDir", "secret", "downwardAPI", "csi", "ephemeral"}
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert not any("hostPort" in port for port in container.get("ports", []))


@ALL_CASES
def test_no_pod_has_a_token_for_kubernetes_or_variables_of_services(chart: Chart, values: Path) -> None:
    for _, spec in _objects(chart, values).pods():
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False


@ALL_CASES
def test_variables_of_credence_name_files_that_are_mounted_from_secrets(chart: Chart, values: Path) -> None:
    for _, spec in _objects(chart, values).pods():
        container = spec["containers"][0]
        mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for variable in container.get("env", []):
            if not variable["name"].startswith(ENVIRONMENT_PREFIX) or "valueFrom" in variable:
                continue
            if variable["name"] == "CREDENCE_HTTP__HOST":
                continue  # no secret
            folder, _, name = variable["value"].rpartition("/")
            sources = volumes[mounts[folder]]["projected"]["sources"]
            assert name in [item["path"] for source in sources for item in source["secret"]["items"]]


def test_a_role_may_have_a_login_of_its_own(chart: Chart) -> None:
    objects = chart.objects(case("secured"))

    def login(spec: Object) -> dict[str, str]:
        volume = next(volume for volume in spec["volumes"] if volume["name"] == "secrets")
        return {
            source["secret"]["items"][0]["path"]: source["secret"]["name"]
            for source in volume["projected"]["sources"]
        }

    name = "CREDENCE_KAFKA__SECURITY__PASSWORD_FILE"
    assert login(objects.of("Job")["topics"]["spec"]["template"]["spec"])[name] == "credence-kafka-admin"
    for workload in objects.workloads().values():
        assert login(workload["spec"]["template"]["spec"])[name] == "credence-kafka"


@ALL_CASES
def test_selectors_choose_the_pods_that_they_are_for_and_no_others(chart: Chart, values: Path) -> None:
    objects = _objects(chart, values)
    workloads = objects.workloads().values()
    assert len(workloads) == len(ROLES)
    for workload in workloads:
        role = workload["metadata"]["labels"]["app.kubernetes.io/component"]
        chosen = [
            labels["app.kubernetes.io/component"]
            for labels, _ in objects.pods()
            if _chooses(workload["spec"]["selector"]["matchLabels"], labels)
        ]
        assert chosen == [role]
    for service in objects.of("Service").values():
        chosen = [
            (labels["app.kubernetes.io/component"], spec)
            for labels, spec in objects.pods()
            if _chooses(service["spec"]["selector"], labels)
        ]
        monitored = service["metadata"]["name"].endswith("-monitoring")
        assert sorted(name for name, _ in chosen) == (list(ROLES) if monitored else ["web"])
        for port in service["spec"]["ports"]:
            for _, spec in chosen:
                assert port["targetPort"] in [open_["name"] for open_ in spec["containers"][0]["ports"]]


def test_all_processes_are_one_job_for_prometheus(chart: Chart) -> None:
    objects = chart.objects(case("full"))
    (monitor,) = objects.of("ServiceMonitor").values()
    matching = [
        service
        for service in objects.of("Service").values()
        if _chooses(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
    ]
    assert [service["metadata"]["name"] for service in matching] == ["release-watcher-monitoring"]
    assert matching[0]["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "release"
    assert matching[0]["spec"]["ports"][0]["name"] == monitor["spec"]["endpoints"][0]["port"]


def test_a_stateful_consumer_keeps_its_name_over_restarts(chart: Chart) -> None:
    objects = chart.objects(changed(DEFAULT, "predictions.kind", "StatefulSet"))
    assert set(objects.of("StatefulSet")) == {"predictions"}
    consumer = objects.of("StatefulSet")["predictions"]["spec"]
    (variable,) = consumer["template"]["spec"]["containers"][0]["env"]
    assert variable["name"] == "CREDENCE_KAFKA__INSTANCE_ID"
    assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert consumer["serviceName"] in [
        service["metadata"]["name"] for service in objects.of("Service").values()
    ]


def test_long_names_are_shortened_to_what_kubernetes_takes(chart: Chart) -> None:
    values = changed(case("full"), "fullnameOverride", "a-name-that-goes-on-" * 5)
    objects = chart.objects(values)
    for thing in objects:
        longest = {"StatefulSet": 52, "ConfigMap": 253}.get(thing["kind"], 63)
        assert len(thing["metadata"]["name"]) <= longest


def test_a_release_may_have_dots_in_its_name_which_a_service_may_not(chart: Chart) -> None:
    for thing in chart.objects(changed(case("full"), "fullnameOverride", "credence.v2")):
        assert "." not in thing["metadata"]["name"]


def test_a_wrong_configuration_is_not_tried_again(chart: Chart) -> None:
    (job,) = chart.objects(DEFAULT).of("Job").values()
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never", "Kubernetes wants it for this policy"


def test_only_the_web_role_shows_the_page_to_others(chart: Chart) -> None:
    objects = chart.objects(DEFAULT)
    for name in ("scheduler", "web"):
        (container,) = objects.of("Deployment")[name]["spec"]["template"]["spec"]["containers"]
        hosts = [one["value"] for one in container.get("env", ()) if one["name"] == "CREDENCE_HTTP__HOST"]
        assert hosts == (["127.0.0.1"] if name == "scheduler" else [])


@pytest.mark.parametrize(("by", "kind"), [("hpa", "HorizontalPodAutoscaler"), ("keda", "ScaledObject")])
def test_scaling_has_one_master_and_ends_at_the_partitions(chart: Chart, by: str, kind: str) -> None:
    values = changed(DEFAULT, "predictions.autoscaling.by", by)
    objects = chart.objects(changed(values, "config.kafka.partitions", 9))
    assert set(objects.of("HorizontalPodAutoscaler")) | set(objects.of("ScaledObject")) == {"predictions"}
    spec = objects.of(kind)["predictions"]["spec"]
    assert spec.get("maxReplicas", spec.get("maxReplicaCount")) == 9
    target = objects.of(spec["scaleTargetRef"]["kind"])["predictions"]
    assert target["metadata"]["name"] == spec["scaleTargetRef"]["name"]
    assert "replicas" not in target["spec"]
    assert objects.of("Deployment")["labels"]["spec"]["replicas"] == 2


def test_nothing_scales_by_itself_unless_it_is_told_to(chart: Chart) -> None:
    objects = chart.objects(DEFAULT)
    assert not objects.of("HorizontalPodAutoscaler")
    assert not objects.of("ScaledObject")


def test_keda_asks_for_the_lag_of_the_groups_and_topics_that_are_read(chart: Chart) -> None:
    values = case("keda")
    settings = Settings.model_validate(values["config"])
    objects = chart.objects(values)
    for name in ("predictions", "labels"):
        (trigger,) = objects.of("ScaledObject")[name]["spec"]["triggers"]
        assert trigger["metadata"]["consumerGroup"] == f"{settings.kafka.group_prefix}.{name}"
        assert trigger["metadata"]["topic"] == getattr(settings.kafka.topics, name)
        assert trigger["metadata"]["bootstrapServers"] == "kafka-0:9093,kafka-1:9093"
        assert trigger["metadata"]["offsetResetPolicy"] == "latest"
        assert all(isinstance(value, str) for value in trigger["metadata"].values())


def _ways_in(objects: Objects, role: str) -> dict[int, list[Any]]:
    """Who may reach which port of a role's pods."""
    labels = next(labels for labels, _ in objects.pods() if labels["app.kubernetes.io/component"] == role)
    ways: dict[int, list[Any]] = {}
    for policy in objects.of("NetworkPolicy").values():
        spec = policy["spec"]
        if _chooses(spec["podSelector"]["matchLabels"], labels) and "Ingress" in spec["policyTypes"]:
            for rule in spec.get("ingress", []):
                for port in rule["ports"]:
                    ways.setdefault(port["port"], []).extend(rule["from"])
    return ways


def test_only_named_ports_are_open_and_only_to_named_peers(chart: Chart) -> None:
    objects = chart.objects(DEFAULT)
    for role in ("predictions", "labels", "scheduler"):
        assert set(_ways_in(objects, role)) == {8401}
    assert set(_ways_in(objects, "web")) == {8400, 8401}
    assert {"podSelector": {}} in _ways_in(objects, "web")[8400]
    assert not _ways_in(objects, "topics")


def test_the_api_of_vendors_is_open_to_those_who_are_named_alone(chart: Chart) -> None:
    values = case("full")
    objects = chart.objects(values)
    assert _ways_in(objects, "web")[8402] == [{"ipBlock": {"cidr": "198.51.100.0/24"}}]
    assert 8402 not in _ways_in(objects, "scheduler")
    objects = chart.objects(changed(values, "networkPolicy.vendorApi.from", []))
    assert 8402 not in _ways_in(objects, "web")


def test_page_and_api_of_vendors_have_services_of_their_own(chart: Chart) -> None:
    objects = chart.objects(case("full"))
    services = {
        service["metadata"]["name"]: [port["targetPort"] for port in service["spec"]["ports"]]
        for service in objects.of("Service").values()
    }
    assert services == {
        "release-watcher-monitoring": ["monitoring"],
        "release-watcher-page": ["http"],
        "release-watcher-vendor-api": ["vendor-api"],
    }
    for ingress in objects.of("Ingress").values():
        (rule,) = ingress["spec"]["rules"]
        backend = rule["http"]["paths"][0]["backend"]["service"]
        assert backend["name"] == ingress["metadata"]["name"]


def test_the_smoke_test_asks_the_page_under_a_name_that_it_has(chart: Chart) -> None:
    arguments = chart.objects(case("full")).of("Pod")["release-watcher-smoke-test"]["spec"]["containers"][0][
        "args"
    ]
    assert "--page-name=smoke-test.example.com" in arguments


def test_a_policy_without_peers_lets_nobody_but_the_smoke_test_in(chart: Chart) -> None:
    objects = chart.objects(changed(DEFAULT, "networkPolicy.http.from", []))
    (peer,) = _ways_in(objects, "web")[8400]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "smoke-test"


def _ways_out(policy: Object) -> set[tuple[int, str]]:
    return {
        (port["port"], port.get("protocol", "TCP"))
        for rule in policy["spec"]["egress"]
        for port in rule["ports"]
    }


def test_processes_reach_dns_kafka_and_redis_and_the_topics_job_no_redis(chart: Chart) -> None:
    policies = chart.objects(DEFAULT).of("NetworkPolicy")
    assert _ways_out(policies[""]) == {(53, "UDP"), (53, "TCP"), (9092, "TCP"), (6379, "TCP")}
    assert _ways_out(policies["topics"]) == {(53, "UDP"), (53, "TCP"), (9092, "TCP")}


def test_the_ports_of_brokers_are_open_without_being_told_twice(chart: Chart) -> None:
    values = changed(DEFAULT, "config.kafka.bootstrap_servers", ["a:9093", "b:9093", "[2001:db8::1]:9094"])
    out = _ways_out(chart.objects(values).of("NetworkPolicy")[""])
    assert {port for port, _ in out} == {53, 9093, 9094, 6379}


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("redis://redis:6380/0", 6380),
        ("rediss://[2001:db8::1]:6390", 6390),
        ("redis://redis-1/0", 6379),
        ("redis://[2001:db8::1]", 6379),
        (None, 6379),
    ],
)
def test_the_port_of_redis_is_open_without_being_told_twice(chart: Chart, url: str | None, port: int) -> None:
    secret = {"CREDENCE_REDIS__URL_FILE": {"secret": "redis", "key": "url"}}
    values = changed(DEFAULT, "config.redis", {"url": url} if url else {})
    out = _ways_out(chart.objects(changed(values, "secrets", secret)).of("NetworkPolicy")[""])
    assert {port for port, _ in out} == {53, 9092, port}


def test_the_ports_of_the_nodes_of_redis_may_be_told(chart: Chart) -> None:
    values = changed(DEFAULT, "networkPolicy.redis.ports", [7001, 7002])
    out = _ways_out(chart.objects(values).of("NetworkPolicy")[""])
    assert {port for port, _ in out} == {53, 9092, 7001, 7002}


def test_ports_stand_in_one_place(chart: Chart) -> None:
    values = changed(DEFAULT, "ports", {"monitoring": 9001, "http": 9000})
    text = chart.text(values)
    assert "8400" not in text.replace("127.0.0.1:8400", "")
    assert "8401" not in text
    objects = chart.objects(values)
    assert set(_ways_in(objects, "web")) == {9000, 9001}
    assert yaml.safe_load(objects.configuration())["monitoring"]["port"] == 9001


def test_a_web_pod_leaves_its_service_before_it_ends(chart: Chart) -> None:
    web = chart.objects(DEFAULT).of("Deployment")["web"]["spec"]
    pod = web["template"]["spec"]
    assert web["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert "preStop" in pod["containers"][0]["lifecycle"]
    assert pod["terminationGracePeriodSeconds"] == 60


def test_a_role_may_stay_at_a_version_while_others_are_upgraded(chart: Chart) -> None:
    images = {
        workload["metadata"]["labels"]["app.kubernetes.io/component"]: workload["spec"]["template"]["spec"][
            "containers"
        ][0]["image"]
        for workload in chart.objects(case("full")).workloads().values()
    }
    assert images.pop("scheduler") == "registry.example/credence:0.0.9"
    assert {image.partition("@")[0] for image in images.values()} == {"registry.example/credence"}


def test_the_next_pod_goes_once_prometheus_has_seen_the_new_one(chart: Chart) -> None:
    objects = chart.objects(case("full"))
    interval = objects.of("ServiceMonitor")["release-watcher"]["spec"]["endpoints"][0]["interval"]
    workloads = objects.workloads()
    assert len(workloads) == len(ROLES)
    for workload in workloads.values():
        assert workload["spec"]["minReadySeconds"] > int(interval.removesuffix("s"))
    for role in ("scheduler", "web"):
        strategy = workloads[f"release-watcher-{role}"]["spec"]["strategy"]
        assert strategy["rollingUpdate"]["maxUnavailable"] == 0


def test_pods_of_a_role_spread_over_zones_and_nodes(chart: Chart) -> None:
    for role, workload in chart.objects(DEFAULT).workloads().items():
        constraints = workload["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert [constraint["topologyKey"] for constraint in constraints] == [
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
        ]
        for constraint in constraints:
            chosen = constraint["labelSelector"]["matchLabels"]
            assert chosen["app.kubernetes.io/component"] == role


def test_every_pod_runs_where_it_is_told_to(chart: Chart) -> None:
    values = case("full")
    message = values["pod"]
    for labels, spec in chart.objects(values).pods():
        assert message["labels"].items() <= labels.items()
        assert message["nodeSelector"].items() <= spec["nodeSelector"].items()
        for key in ("tolerations", "affinity", "priorityClassName"):
            assert spec[key] == message[key]


def test_a_role_may_differ_from_the_others_in_where_it_runs(chart: Chart) -> None:
    objects = chart.objects(case("full"))
    chosen = {
        workload["metadata"]["labels"]["app.kubernetes.io/component"]: workload["spec"]["template"]["spec"][
            "nodeSelector"
        ]
        for workload in objects.workloads().values()
    }
    assert chosen["scheduler"] == {"pool": "general", "disk": "ssd"}
    assert chosen["web"] == {"pool": "general"}
