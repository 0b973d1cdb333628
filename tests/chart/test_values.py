"""What the chart refuses, and what it makes of values."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from rendering import CASES, CHART, Chart, RefusedError, case, changed

from service.config.loader import load_settings

DEFAULT = case("default")
TOKEN_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("config.models.sorter.intervall", 0.9, "intervall"),
        ("config.kafka.partitions", 0, "partitions"),
        ("config.models", {}, "models"),
        ("config.models.sorter.prior", "none", "prior"),
        ("config.kafka.bootstrap_servers", [], "bootstrap_servers"),
        ("config", {"models": DEFAULT["config"]["models"]}, "missing propert.*kafka"),
        ("prediction", {"replicas": 1}, "prediction"),
        ("predictions.kind", "DaemonSet", "kind"),
        ("predictions.autoscaling.by", "both", "by"),
        ("web.pod.tolerance", [], "tolerance"),
    ],
)
def test_a_wrong_key_or_value_is_told_before_anything_is_installed(
    chart: Chart, path: str, value: object, message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        chart.text(changed(DEFAULT, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("config.redis.url", "redis://user:hidden@redis:6379/0"),
        ("config.hash_key", "0" * 32),
        ("config.redis.password", "hidden"),
        ("config.kafka.security.client_secret", "hidden"),
        ("config.kafka.security.password", "hidden"),
        ("config.vendors", {"acme": {"label_keys": ["hidden"]}}),
        ("config.kafka.security.key_password", "hidden"),
        ("secrets.CREDENCE_HASH_KEY_FILE", "hidden"),
        ("secrets.CREDENCE_HASH_KEY", {"secret": "credence", "key": "hash-key"}),
        ("pod.extraEnv", [{"name": "CREDENCE_HASH_KEY", "value": "hidden"}]),
        ("web.pod", {"extraEnv": [{"name": "CREDENCE_HASH_KEY", "value": "hidden"}]}),
    ],
)
def test_no_secret_can_be_put_into_values(chart: Chart, path: str, value: object) -> None:
    with pytest.raises(RefusedError, match=r"values don't meet the specifications|values\.schema|validation"):
        chart.text(changed(DEFAULT, path, value))


@pytest.mark.parametrize(
    "path",
    [
        "config.http.host",
        "config.http.port",
        "config.monitoring.port",
        "config.kafka.instance_id",
        "config.vendor_api.host",
    ],
)
def test_what_the_chart_sets_itself_is_not_configured_twice(chart: Chart, path: str) -> None:
    with pytest.raises(
        RefusedError, match=path.rpartition(".")[2] if "monitoring" not in path else "monitoring"
    ):
        chart.text(changed(DEFAULT, path, 8123))


def test_topics_without_copies_are_told_of(chart: Chart) -> None:
    message = "config.kafka.replication_factor is 1"
    assert message in chart.notes(DEFAULT)
    assert message not in chart.notes(changed(DEFAULT, "config.kafka.replication_factor", 3))
    assert message not in chart.notes(changed(DEFAULT, "topics.create", value=False))


def test_a_page_with_names_of_its_own_is_not_told_to_be_at_the_loopback_address(chart: Chart) -> None:
    named = "Host: page.example.com"
    values = changed(DEFAULT, "config.http", {"allowed_hosts": ["page.example.com"]})
    assert named in chart.notes(values)
    assert "Host:" not in chart.notes(DEFAULT)
    values["config"]["http"]["allowed_hosts"] += ["127.0.0.1"]
    assert "Host:" not in chart.notes(values)


def test_a_redis_that_is_not_told_is_missed(chart: Chart) -> None:
    with pytest.raises(RefusedError, match="CREDENCE_REDIS__URL_FILE"):
        chart.text(changed(DEFAULT, "config.redis", {}))


def test_a_vendor_without_label_keys_is_missed(chart: Chart) -> None:
    values = changed(DEFAULT, "config.vendors", {"acme": {"token_sha256": [TOKEN_SHA256]}})
    with pytest.raises(RefusedError, match="CREDENCE_VENDORS__ACME__LABEL_KEYS_FILE"):
        chart.text(values)
    keys = {"CREDENCE_VENDORS__ACME__LABEL_KEYS_FILE": {"secret": "vendors", "key": "acme"}}
    chart.text(changed(values, "secrets", keys))


def test_an_api_that_no_vendor_has_a_token_for_is_refused(chart: Chart) -> None:
    with pytest.raises(RefusedError, match="token_sha256"):
        chart.text(changed(DEFAULT, "vendorApi.enabled", True))


def test_more_replicas_than_partitions_are_refused(chart: Chart) -> None:
    values = changed(DEFAULT, "labels.autoscaling", {"by": "hpa", "maxReplicas": 5})
    with pytest.raises(RefusedError, match=r"config\.kafka\.partitions \(4\)"):
        chart.text(values)
    chart.text(changed(values, "config.kafka.partitions", 5))


def test_an_ingress_without_a_host_is_refused(chart: Chart) -> None:
    with pytest.raises(RefusedError, match=r"page\.ingress\.hosts"):
        chart.text(changed(DEFAULT, "page.ingress.enabled", True))


def _secrets(values: dict[str, Any], folder: Path) -> dict[str, str]:
    """The variables of secrets, each with a file of its own, fit for a hash key and for a label key."""
    variables = {name: str(folder / name) for name in values.get("secrets", {})}
    for name, path in variables.items():
        Path(path).write_text(hashlib.md5(name.encode()).hexdigest())
    return variables


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_processes_read_the_configuration_as_it_was_meant(chart: Chart, values: Path, tmp_path: Path) -> None:
    given = yaml.safe_load(values.read_text())
    config = tmp_path / "credence.yaml"
    config.write_text(chart.objects(given).configuration())
    environment = _secrets(given, tmp_path)
    settings = load_settings(config, environment)
    meant = tmp_path / "meant.yaml"
    meant.write_text(yaml.safe_dump(given["config"]))
    expected = load_settings(meant, environment)
    assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8400)
    assert (settings.monitoring.host, settings.monitoring.port) == ("0.0.0.0", 8401)
    left = {"http", "monitoring", "vendor_api"}
    assert settings.model_dump(exclude=left) == expected.model_dump(exclude=left)
    assert settings.http.history_hours == expected.http.history_hours


def test_a_model_without_half_life_stays_without_one(chart: Chart) -> None:
    config = yaml.safe_load(chart.objects(case("full")).configuration())
    assert config["models"]["digits"]["traffic_half_life_days"] is None
    assert config["models"]["digits"]["draw_half_life_hours"] is None


def test_text_that_looks_like_something_else_stays_text(chart: Chart) -> None:
    words = [
        "yes",
        "y",
        "on",
        "~",
        "null",
        "=",
        "<<",
        "{{",
        "{}",
        "a: b",
        "#c",
        "<&>",
        "\u2028",
        "\U0001f989",
    ]
    numbers = ["0o17", "010", "0x1F", "1_000", "1e3", ".5", "+1", ".inf", "12:30", "2024-01-01"]
    names = words + numbers
    rendered = chart.objects(changed(DEFAULT, "config.models.sorter.classes", names)).configuration()
    assert yaml.safe_load(rendered)["models"]["sorter"]["classes"] == names


def test_a_chart_around_this_one_may_have_global_values(chart: Chart) -> None:
    assert chart.text(changed(DEFAULT, "global.region", "north")) == chart.text(DEFAULT)


EXAMPLES = re.findall(r"```yaml\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_page_are_read_by_processes(chart: Chart, example: str, tmp_path: Path) -> None:
    values = yaml.safe_load(example)
    values["config"] = DEFAULT["config"] | values.get("config", {})
    path = tmp_path / "credence.yaml"
    path.write_text(chart.objects(values).configuration())
    load_settings(path, _secrets(values, tmp_path))


def _checksums(chart: Chart, values: dict[str, Any]) -> set[str]:
    return {
        workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for workload in chart.objects(values).workloads().values()
    }


def test_another_configuration_restarts_all_processes_and_other_values_do_not(chart: Chart) -> None:
    before = _checksums(chart, DEFAULT)
    assert len(before) == 1
    assert _checksums(chart, changed(DEFAULT, "web.replicas", 3)) == before
    assert _checksums(chart, changed(DEFAULT, "config.log_level", "debug")).isdisjoint(before)
    assert _checksums(chart, changed(DEFAULT, "ports.http", 9000)).isdisjoint(before)
