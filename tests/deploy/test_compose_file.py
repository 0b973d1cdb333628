"""What deploy/compose.yaml promises, and what it gives to Grafana, which is no process of any test."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_file import COMPOSE_FILE, ROOT, compose_file, mounts

from service.config.loader import load_settings
from service.demo.world import CLASSES

FILE = compose_file()
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = {name for name, service in SERVICES.items() if "build" in service}
PROCESSES = {"predictions", "labels", "scheduler", "web"}


def read(path: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / path).read_text())


def source_of(service: Mapping[str, Any], target: str) -> Path:
    """The file or folder of the repository that a service sees at a path."""
    found = {at: source for source, at, _ in mounts(service)}
    return (COMPOSE_FILE.parent / found[target]).resolve()


@pytest.mark.parametrize("name", SERVICES)
def test_no_port_is_published_beyond_this_machine(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:"), port


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_no_rights_that_it_does_not_need_and_its_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    if name != "kafka":  # its image writes its configuration at every start
        assert service["read_only"] is True


def test_redis_has_room_for_a_copy_of_all_that_it_may_hold() -> None:
    gigabytes = re.search(
        r"^maxmemory (\d+)gb$", (ROOT / "deploy/compose/redis.conf").read_text(), re.MULTILINE
    )
    assert gigabytes is not None
    assert SERVICES["redis"]["deploy"]["resources"]["limits"]["memory"] == f"{2 * int(gigabytes[1])}g"


@pytest.mark.parametrize("name", sorted(set(SERVICES) - OURS))
def test_images_of_others_are_named_by_version_and_say_whether_they_are_healthy(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+$", SERVICES[name]["image"])
    assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_services_are_of_the_image_of_this_repository_and_its_user(name: str) -> None:
    service = SERVICES[name]
    target = "demo" if name.startswith("demo-") else "credence"
    assert service["build"] == {"context": "..", "target": target}
    assert service["user"] == "65532:65532"


def test_the_dockerfile_has_what_our_services_rely_on() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert {"FROM runtime AS credence", "FROM runtime AS demo"} <= set(lines)
    # Commands are arguments of the entrypoint; the configuration is found in the folder that they start in.
    assert {"USER 65532:65532", 'ENTRYPOINT ["credence"]', "WORKDIR /etc/credence"} <= set(lines)
    assert '  CMD ["python", "/opt/credence/healthcheck.py"]' in lines
    for name in OURS:
        assert mounts(SERVICES[name])[0][1] == "/etc/credence/credence.yaml"


def test_kafka_is_of_the_version_that_is_tested() -> None:
    pom = (ROOT / "tests/stack/pom.xml").read_text()
    (version,) = re.findall(r"<artifactId>kafka_[\d.]+</artifactId>\s*<version>([\d.]+)<", pom)
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version}"


def test_programs_outside_are_told_the_address_that_kafka_is_published_at() -> None:
    environment = SERVICES["kafka"]["environment"]
    listeners = dict(each.split("://") for each in environment["KAFKA_ADVERTISED_LISTENERS"].split(","))
    (published,) = SERVICES["kafka"]["ports"]
    assert published == f"{listeners['OUTSIDE']}:19092"
    assert "OUTSIDE://:19092" in environment["KAFKA_LISTENERS"].split(",")


def test_prometheus_looks_at_every_process_of_credence_at_its_monitoring_port() -> None:
    (job,) = read("deploy/compose/prometheus.yaml")["scrape_configs"]
    (names,) = job["dns_sd_configs"]
    commands = {name for name in OURS if SERVICES[name]["command"][0] in {"consume", "schedule", "serve"}}
    assert commands == PROCESSES
    assert set(names["names"]) == PROCESSES
    assert names["port"] == load_settings(ROOT / "deploy/compose/credence.yaml", {}).monitoring.port == 8401
    for name in PROCESSES:
        assert "monitoring" in SERVICES[name]["networks"]


def test_routes_and_inhibitions_are_those_of_the_example() -> None:
    own = read("deploy/compose/alertmanager.yaml")
    example = read("deploy/alertmanager/credence.alertmanager.yaml")
    assert own["route"] == example["route"]
    assert own["inhibit_rules"] == example["inhibit_rules"]
    assert own["receivers"] == [{"name": each["name"]} for each in example["receivers"]]


def test_with_the_second_file_alertmanager_tells_people_and_has_the_secrets_for_it() -> None:
    added = compose_file(path=ROOT / "deploy/compose/notify.yaml")
    alertmanager = added["services"]["alertmanager"]
    config = source_of(alertmanager, "/etc/alertmanager/alertmanager.yaml")
    assert config == ROOT / "deploy/alertmanager/credence.alertmanager.yaml"
    assert source_of(alertmanager, "/etc/alertmanager/credence.tmpl").is_file()
    secrets = {f"/run/secrets/{each['target']}" for each in alertmanager["secrets"]}
    assert secrets == set(re.findall(r"/run/secrets/[\w-]+", config.read_text()))
    assert {each["source"] for each in alertmanager["secrets"]} == set(added["secrets"])


def test_grafana_finds_our_dashboards_in_their_folder() -> None:
    grafana = SERVICES["grafana"]
    provisioning = source_of(grafana, "/etc/grafana/provisioning/dashboards")
    document = yaml.safe_load((provisioning / "credence.yaml").read_text())
    assert document["apiVersion"] == 1
    (provider,) = document["providers"]
    assert (provider["type"], provider["folder"]) == ("file", "Credence")
    dashboards = source_of(grafana, provider["options"]["path"])
    assert dashboards == ROOT / "deploy/grafana/dashboards"
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert (dashboards / home.name).is_file()


def test_grafana_asks_the_prometheus_that_scrapes_credence() -> None:
    folder = source_of(SERVICES["grafana"], "/etc/grafana/provisioning/datasources")
    (path,) = folder.iterdir()
    own = yaml.safe_load(path.read_text())
    (example,) = read("deploy/grafana/provisioning/datasources/credence.yaml")["datasources"]
    assert own["apiVersion"] == 1
    assert own["datasources"] == [example | {"url": "http://prometheus:9090"}]
    interval = read("deploy/compose/prometheus.yaml")["global"]["scrape_interval"]
    assert example["jsonData"]["timeInterval"] == interval
    assert set(SERVICES["grafana"]["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_every_file_that_is_mounted_is_committed() -> None:
    for name, service in SERVICES.items():
        for source, target, writable in mounts(service):
            if source.startswith("."):
                assert (COMPOSE_FILE.parent / source).exists(), f"{name}: {target}"
                assert not writable, f"{name}: {target}"
            else:
                assert source in FILE["volumes"], f"{name}: {target}"


def test_the_configuration_is_the_one_that_a_variable_names() -> None:
    file = compose_file({"CREDENCE_CONFIG": "/home/me/credence.yaml"})
    for name in OURS:
        assert mounts(file["services"][name])[0][0] == "/home/me/credence.yaml", name


def test_secrets_are_made_once_and_nobody_else_may_enter_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"

    def make() -> dict[str, str]:
        script = ROOT / "deploy/compose/secrets.sh"
        subprocess.run([script], env={"PATH": "/usr/bin:/bin", "CREDENCE_SECRETS": str(folder)}, check=True)
        return {path.name: path.read_text() for path in folder.iterdir()}

    secrets = make()
    assert make() == secrets
    assert set(secrets) == set(FILE["secrets"])
    assert folder.stat().st_mode & 0o777 == 0o700
    # Containers read them under users of their own, and see neither the folder nor its rights.
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    assert re.fullmatch(r"[0-9a-f]{64}", secrets["redis_password"])
    assert secrets["redis_url"] == f"redis://:{secrets['redis_password']}@redis:6379/0"
    assert secrets["grafana_password"] != secrets["redis_password"]


def test_the_configuration_is_for_the_demos_model_and_cameras() -> None:
    settings = load_settings(ROOT / "deploy/compose/credence.yaml", {})
    assert tuple(settings.models["digits"].classes) == CLASSES
    assert settings.models["digits"].groupings["camera"].attribute == "camera"


def test_the_pages_file_for_vendors_gives_keys_to_every_process_that_reads_the_configuration() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/compose.md").read_text(), re.DOTALL)
    added = yaml.safe_load(text)
    assert set(added["services"]) == PROCESSES | {"topics"}
    for service in added["services"].values():
        (variable,) = service["environment"]
        assert variable.startswith("CREDENCE_VENDORS__")
        assert set(service["secrets"]) == set(added["secrets"])
