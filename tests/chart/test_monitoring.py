"""Rules and dashboards in the chart are those of deploy/, in the archive too."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from missing_programs import program
from rendering import CHART, ROOT, Chart, case, changed

FULL = case("full")
RULES = {"recording": "credence.recording.rules.yaml", "alerts": "credence.rules.yaml"}


def test_rules_are_those_of_deploy_with_their_templates_untouched(chart: Chart) -> None:
    values = changed(FULL, "monitoring.rules", {"enabled": True})
    rendered = chart.objects(values).of("PrometheusRule")
    assert len(rendered) == len(RULES)
    for name, file in RULES.items():
        expected = yaml.safe_load((ROOT / "deploy/prometheus" / file).read_text())
        assert rendered[f"release-watcher-{name}"]["spec"] == expected


def test_links_of_alerts_lead_where_they_are_told_to(chart: Chart) -> None:
    rendered = chart.objects(FULL).of("PrometheusRule")
    text = yaml.safe_dump(list(rendered.values()))
    assert "credence.example/" not in text
    assert "grafana.example/" not in text
    assert "https://credence.mycompany.net/docs/runbooks/CredenceModelAccuracyLow" in text


def test_prometheus_takes_the_rules_with_their_new_links(chart: Chart, tmp_path: Path) -> None:
    promtool = program("promtool", package="prometheus")
    files = []
    for name, rule in chart.objects(FULL).of("PrometheusRule").items():
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(yaml.safe_dump(rule["spec"]))
    subprocess.run([promtool, "check", "rules", *files], check=True, capture_output=True)


def test_dashboards_are_those_of_deploy(chart: Chart) -> None:
    folder = ROOT / "deploy/grafana/dashboards"
    values = changed(FULL, "monitoring.rules", {})
    found = {
        name: json.loads(text)
        for config in chart.objects(values).of("ConfigMap").values()
        if config["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in config["data"].items()
    }
    assert found == {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_nothing_of_the_operators_is_there_unless_it_is_asked_for(chart: Chart) -> None:
    kinds = {thing["apiVersion"] for thing in chart.objects(case("default"))}
    assert kinds == {"v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "policy/v1"}


@pytest.fixture(scope="module")
def archive(chart: Chart, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as it is handed out."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([chart.helm, "package", str(CHART), "-d", str(folder)], check=True, capture_output=True)
    (path,) = folder.glob("credence-*.tgz")
    return path


def test_the_archive_holds_the_files_themselves_and_no_links(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        members = {member.name: member for member in packed}
        assert all(member.isfile() for member in members.values())
        for folder, place in (("prometheus", "prometheus"), ("dashboards", "grafana/dashboards")):
            for path in (CHART / "files" / folder).iterdir():
                content = packed.extractfile(members[f"credence/files/{folder}/{path.name}"])
                assert content is not None
                assert content.read() == (ROOT / "deploy" / place / path.name).read_bytes()
    assert not [name for name in members if name.startswith("credence/ci/")]


def test_the_archive_renders_as_the_folder_does(chart: Chart, archive: Path) -> None:
    assert Chart(chart.helm, archive).text(FULL) == chart.text(FULL)
