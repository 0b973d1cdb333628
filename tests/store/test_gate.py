"""`credence gate` on a real Redis: its exit codes, and what it prints for programs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from redis_cluster import EmbeddedRedisCluster, redis_settings
from store_site import NOW, Record, Site, message, record

from service.app.cli import main
from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis
from service.statistics.certificates import CertificateTest
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.references import ReferenceStore, ReferenceWindow

REGIONS = ("north", "south", "west")
MODEL: dict[str, Any] = {
    "classes": ["cat", "dog"],
    "alerts": {"min_accuracy": 0.8},
    "evidence": {"alpha": 0.5},
    "groupings": {"region": {"by": "attribute", "attribute": "region"}},
    "traffic_half_life_days": None,
    "reference": {"label_share": 0.0},
    "assessments": {
        "release": {
            "task": "estimation",
            "grouping": "region",
            "policy": "certify",
            "budget": {"labels": 5_000},
            "max_in_flight": 1_000,
        }
    },
}


def stream(first: int, count: int, regions: tuple[str, ...] = REGIONS) -> list[Record]:
    """One record for each item; regions take turns."""
    return [
        record(item, message(item, attributes={"region": regions[item % len(regions)]}, predicted_at=NOW))
        for item in range(first, first + count)
    ]


class Pipeline:
    """A deployment whose labels come when the test says so, and the command that looks at it."""

    def __init__(self, site: Site, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site = site
        self.config = config
        self._capsys = capsys
        self._monitor = site.monitor("m")
        self.offset = 0
        self.labels = 0
        self.requests: dict[int, str] = {}  # ids of requests, by item

    def configure(self, **sections: Any) -> None:
        """Start again with other settings of the model."""
        document = json.loads(self.config.read_text(encoding="utf-8"))
        document["models"]["m"] |= sections
        self.config.write_text(json.dumps(document), encoding="utf-8")
        self.site = Site(self.site.connection, document["models"])
        self._monitor = self.site.monitor("m")

    def predict(self, count: int, regions: tuple[str, ...] = REGIONS) -> None:
        self.site.take_in(stream(self.offset, count, regions))
        self.offset += count

    def rounds(self, count: int = 1, *, is_correct: Callable[[int], bool] = lambda _: True) -> None:
        """Rounds of requests, each of which is answered; items whose prediction is not correct are dogs."""
        for _ in range(count):
            self._monitor.refresh(NOW)
            self._monitor.ask(epoch=1, now=NOW)
            asked = map(json.loads, self.site.requests("m").read_outbox().values())
            self.requests |= {int(one["item_id"]): one["request_id"] for one in asked}
            answered = self.site.answer("m", lambda item: "cat" if is_correct(item) else "dog")
            self.labels += len(answered)
        self._monitor.refresh(NOW)

    def gate(self, *options: str, model: str = "m") -> tuple[int, str]:
        """Exit code and output of the command."""
        code = main(["gate", "--config", str(self.config), "--model", model, *options])
        return code, self._capsys.readouterr().out

    def found(self, *options: str) -> dict[str, Any]:
        return dict(json.loads(self.gate("--json", *options)[1]))


@pytest.fixture
def pipeline(
    tmp_path: Path,
    connection: Connection,
    redis_server: EmbeddedRedis | EmbeddedRedisCluster,
    capsys: pytest.CaptureFixture[str],
) -> Pipeline:
    config = tmp_path / "credence.yaml"
    redis = redis_settings(redis_server, connection.prefix)
    models = {"m": MODEL}
    document = {"redis": redis, "models": models, "bounds": {"lateness_hours": None}}
    config.write_text(json.dumps(document), encoding="utf-8")
    return Pipeline(Site(connection, models), config, capsys)


def test_it_is_0_once_every_group_is_shown_to_meet_the_threshold(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6)
    code, text = pipeline.gate()
    assert code == 0
    assert text.startswith("m by region: shown. Certificate: All 3 groups are shown to meet 80%")


def test_it_is_1_once_a_group_is_confirmed_to_be_below_the_threshold(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6, is_correct=lambda item: item % 3 != 1)
    code, text = pipeline.gate()
    assert code == 1
    assert "south confirmed to be below 80%" in text


def own(**groups: float) -> dict[str, Any]:
    """Thresholds of the model, and of some regions."""
    thresholds = {group: {"min_accuracy": least} for group, least in groups.items()}
    return {"min_accuracy": 0.8, "groupings": {"region": {"groups": thresholds}}}


def test_a_group_with_a_threshold_of_its_own_has_to_meet_that_one(pipeline: Pipeline) -> None:
    def is_correct(item: int) -> bool:
        return item % 3 != 1 or item % 2 > 0  # half of those of the south

    pipeline.configure(alerts=own(south=0.3))
    pipeline.predict(900)
    pipeline.rounds(8, is_correct=is_correct)
    code, text = pipeline.gate()
    assert code == 0
    assert "All 3 groups are shown to meet their thresholds of 30% to 80%" in text
    assert "  south: Shown to meet 30%." in text
    groups = pipeline.found()["groupings"][0]["group_certificates"]
    assert [one["min_accuracy"] for one in groups] == [0.8, 0.3, 0.8]
    pipeline.configure(alerts={"min_accuracy": 0.8})
    pipeline.rounds(8, is_correct=is_correct)
    code, text = pipeline.gate()
    assert code == 1
    assert "south confirmed to be below 80%" in text


def test_a_group_without_a_threshold_is_left_out(pipeline: Pipeline) -> None:
    alerts = {"groupings": {"region": {"groups": {"north": {"min_accuracy": 0.8}}}}}
    pipeline.configure(alerts=alerts)
    pipeline.predict(600)
    pipeline.rounds(6, is_correct=lambda item: item % 3 == 0)
    code, text = pipeline.gate()
    assert code == 0
    assert "The only group is shown to meet 80%" in text
    assert "  south: Left out: no threshold." in text
    assert {item % 3 for item in pipeline.requests} == {0}, "labels of others were requested"


def test_it_is_2_while_labels_are_lacking(pipeline: Pipeline) -> None:
    assert pipeline.gate()[0] == 2  # without traffic
    pipeline.predict(600)
    assert pipeline.gate()[0] == 2  # without labels
    pipeline.rounds(1, is_correct=lambda item: item % 7 > 0)
    code, text = pipeline.gate()
    assert code == 2
    assert "No certificate yet" in text


def test_a_pipeline_that_asks_after_every_label_is_told_once_it_is_shown(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(1, is_correct=lambda item: item % 31 > 0)
    codes = []
    for _ in range(12):
        codes.append(pipeline.gate()[0])
        pipeline.rounds(1, is_correct=lambda item: item % 31 > 0)
    first = codes.index(0)
    assert codes == [2] * first + [0] * (12 - first)


def test_certify_requests_no_more_labels_than_a_certificate_lacks(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    lacking = CertificateTest(0.8).collected(*np.zeros((3, 1, 1)))
    pipeline.rounds(1)
    assert pipeline.labels == 3 * CertificateTest(0.8).labels_left(lacking, 0.5)[0, 0]
    before, left = pipeline.labels, pipeline.found()["labels_left"]
    pipeline.rounds(1)
    assert pipeline.labels - before == left


def test_certify_requests_nothing_once_every_group_is_shown(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(8)
    assert pipeline.gate()[0] == 0
    labels = pipeline.labels
    pipeline.rounds(3)
    assert pipeline.labels == labels


def test_a_group_that_appears_later_has_to_be_shown_too(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6)
    pipeline.predict(60, ("north", "east"))
    found = pipeline.found()
    assert found["outcome"] == "undecided"
    assert [one["group"] for one in lacking(found)] == ["east"]
    pipeline.rounds(6)
    assert pipeline.gate()[0] == 0


def lacking(found: dict[str, Any]) -> list[dict[str, Any]]:
    [grouping] = found["groupings"]
    return [one for one in grouping["group_certificates"] if one["outcome"] == "undecided"]


def test_groups_with_little_traffic_can_be_left_out(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6)
    pipeline.predict(2, ("east",))
    assert pipeline.gate()[0] == 2
    pipeline.configure(evidence={"alpha": 0.5, "certificate_least_share": 0.01})
    code, text = pipeline.gate()
    assert code == 0
    assert "99.7% of the traffic" in text


def test_a_group_that_is_left_out_and_misses_the_threshold_does_not_stop_requests(pipeline: Pipeline) -> None:
    pipeline.configure(evidence={"alpha": 0.5, "certificate_least_share": 0.05})
    pipeline.predict(80, (*REGIONS, "east"))
    pipeline.rounds(6, is_correct=lambda item: item % 4 < 3)
    assert pipeline.gate()[0] == 1
    pipeline.predict(900)
    pipeline.rounds(6)
    assert pipeline.gate()[0] == 0


def test_a_certificate_is_withdrawn_if_labels_are_corrected(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6)
    assert pipeline.gate()[0] == 0
    corrections = [
        LabelEvent(request, str(item), "correction", "dog", f"{item + 10_000:016x}", NOW + 1, "ana")
        for item, request in pipeline.requests.items()
        if item % 3 == 1
    ]
    pipeline.site.labels("m").apply(0, corrections, now=NOW + 1)
    code, text = pipeline.gate()
    assert code == 1
    assert "south confirmed to be below 80%" in text


def test_a_certificate_begins_again_once_a_reference_is_set(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(6)
    store = ReferenceStore(pipeline.site.connection, pipeline.site.keys("m"))
    store.set(ReferenceWindow(-math.inf, NOW + 1, NOW + 1))
    assert pipeline.gate()[0] == 2


def test_json_has_every_group_with_its_outcome(pipeline: Pipeline) -> None:
    pipeline.predict(600)
    pipeline.rounds(1, is_correct=lambda item: item % 7 > 0)
    found = pipeline.found()
    [grouping] = found["groupings"]
    assert (found["model"], found["min_accuracy"], found["alpha"]) == ("m", 0.8, 0.5)
    assert grouping["grouping"] == "region"
    groups = {one["group"]: one for one in grouping["group_certificates"]}
    assert set(REGIONS) <= groups.keys()
    assert all(groups[name]["outcome"] in {"shown", "undecided"} for name in REGIONS)
    assert all(groups[name]["labels"] > 0 for name in REGIONS)


def test_junit_has_a_case_for_every_group(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.predict(600)
    pipeline.rounds(6, is_correct=lambda item: item % 3 != 1)
    file = tmp_path / "gate.xml"
    assert pipeline.gate("--junit", str(file))[0] == 1
    suites = ET.parse(file).getroot()
    [suite] = suites
    cases = {case.get("name"): [each.tag for each in case] for case in suite}
    assert suites.tag == "testsuites"
    assert (suite.get("name"), suite.get("failures")) == ("m.region", "1")
    assert cases["south"] == ["failure"]
    assert suite.get("tests") == str(len(cases))


def test_junit_of_a_model_without_traffic_has_an_error(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    assert pipeline.gate("--junit", str(file))[0] == 2
    assert ET.parse(file).getroot().get("errors") == "1"


def refusal(pipeline: Pipeline, capsys: pytest.CaptureFixture[str], *options: str, model: str = "m") -> str:
    code = main(["gate", "--config", str(pipeline.config), "--model", model, *options])
    assert code == 3
    return capsys.readouterr().err


def test_it_is_3_without_an_answer(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown model" in refusal(pipeline, capsys, model="n")
    assert "no threshold" in refusal(pipeline, capsys, "--grouping", "score_bin")
    document = json.loads(pipeline.config.read_text(encoding="utf-8"))
    document["models"]["m"] |= {"alerts": {}, "assessments": {}}
    pipeline.config.write_text(json.dumps(document), encoding="utf-8")
    assert "set models.m.alerts.min_accuracy" in refusal(pipeline, capsys, "--grouping", "region")
    document["models"]["m"]["alerts"] = {"min_accuracy": 0.8}
    pipeline.config.write_text(json.dumps(document), encoding="utf-8")
    assert "no assessment" in refusal(pipeline, capsys)
    document["redis"]["url"] = f"redis://127.0.0.1:{free_port()}/0"
    pipeline.config.write_text(json.dumps(document), encoding="utf-8")
    assert "Cannot connect to Redis" in refusal(pipeline, capsys, "--grouping", "region")


def test_a_command_line_that_is_not_valid_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gate"])
    assert ended.value.code == 3
    assert "--model" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--bogus"], ["extra"]])
def test_an_option_that_gate_does_not_know_is_no_answer(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--model", "m", *words])
    assert ended.value.code == 3
    assert words[0] in capsys.readouterr().err


def test_an_answer_that_cannot_be_written_is_none(pipeline: Pipeline) -> None:
    words = ["gate", "--config", str(pipeline.config), "--model", "m"]
    code = f"from service.app.cli import main; raise SystemExit(main({words!r}))"
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 3
    assert b"cannot be written" in ended.stderr
