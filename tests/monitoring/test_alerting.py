"""From a label to a notification, with the committed rules and routes; every process is a real one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from committed_alerting import ROOT, hurried_rules, routing_to
from harness import Deploy, Labeller, prediction, wait_for
from monitoring_servers import StartAlertmanager, StartPrometheus, WebhookReceiver, alerting_to, scrape

ASSESSMENTS = (
    "{regions: {task: estimation, grouping: region, policy: random, budget: {labels: 100000}, "
    "max_in_flight: 60}}"
)
# What is old is forgotten within seconds, so beliefs soon follow a labeller who changes their mind.
HALF_LIFE_DAYS = 8 / 86_400
MODEL = f"label_half_life_days: {HALF_LIFE_DAYS}\ntraffic_half_life_days: {HALF_LIFE_DAYS}"


def truth_of_a_mended_model(number: int) -> str:
    """The model is right 19 times of 20 in every region."""
    return "dog" if number % 20 == 0 else str(prediction(number)["predicted_class"])


class Stream:
    """Predictions that keep coming and a labeller who answers, while a test waits for something."""

    def __init__(self, labeller: Labeller, send: Callable[[range], None]) -> None:
        self.labeller = labeller
        self._send = send
        self._numbers = itertools.count(step=200)

    def until(self, condition: Callable[[], Any], *, seconds: float, what: str) -> Any:
        """Go on until the condition is true; its value."""

        def turn() -> Any:
            number = next(self._numbers)
            self._send(range(number, number + 200))
            self.labeller.answer()
            return condition()

        return wait_for(turn, seconds=seconds, what=what)


@pytest.fixture
def stream(
    tmp_path: Path,
    deploy: Deploy,
    start_prometheus: StartPrometheus,
    start_alertmanager: StartAlertmanager,
    webhook: WebhookReceiver,
) -> Iterator[Stream]:
    """A model whose predictions stream through Credence, watched by Prometheus and Alertmanager."""
    alertmanager = start_alertmanager(routing_to(webhook))
    deployment = deploy(assessments=ASSESSMENTS, model=MODEL)
    streaming = Stream(Labeller(deployment), deployment.send_predictions)
    with deployment.process("run") as process:
        streaming.until(process.ready, seconds=120, what="Credence")
        start_prometheus(
            {
                "global": {"external_labels": {"environment": "test"}},
                "alerting": alerting_to(alertmanager),
                "rule_files": [
                    hurried_rules("credence.recording.rules.yaml", tmp_path),
                    hurried_rules("credence.rules.yaml", tmp_path),
                ],
                "scrape_configs": [scrape("credence", [f"127.0.0.1:{process.port}"])],
            }
        )
        yield streaming


def test_a_region_that_is_bad_is_told_to_its_models_owner_and_once_mended_is_resolved(
    stream: Stream, webhook: WebhookReceiver
) -> None:
    def notified(status: str) -> list[dict[str, Any]]:
        return webhook.alerts(status=status, alertname="CredenceGroupAccuracyLow", group="south")

    firing = stream.until(lambda: notified("firing"), seconds=120, what="the alert")[0]
    assert firing["labels"] == {
        "alertname": "CredenceGroupAccuracyLow",
        "severity": "warning",
        "environment": "test",
        "job": "credence",
        "model": "sorter",
        "grouping": "region",
        "group": "south",
    }
    told = firing["annotations"]
    assert "is below alerts.min_accuracy (80%)" in told["description"]
    assert told["runbook_url"] == "https://credence.example/docs/runbooks/CredenceGroupAccuracyLow"
    assert (ROOT / "docs/runbooks/CredenceGroupAccuracyLow.md").is_file()
    assert told["page_url"] == "https://credence.example/?model=sorter&grouping=region&group=south"
    dashboard = "/d/credence-model?var-model=sorter&var-grouping=region&var-group=south"
    assert told["dashboard_url"].endswith(dashboard)
    assert {post["path"] for post in webhook.payloads if firing in post["alerts"]} == {"/model-owner"}

    stream.labeller.truth = truth_of_a_mended_model
    stream.until(lambda: notified("resolved"), seconds=120, what="the end of the alert")
    assert not webhook.alerts(group="north")
