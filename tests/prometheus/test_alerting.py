"""From a label to a notification, with the committed rules and routes; every process is a real one."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from committed_alerting import ROOT, hurried_rules, routing_to
from harness import Deploy, Deployment, Labeller, prediction, wait_for
from monitoring_servers import StartAlertmanager, StartPrometheus, WebhookReceiver, alerting_to, scrape

from service.app.wiring import model_keys
from service.store.references import ReferenceStore, ReferenceWindow

ASSESSMENTS = (
    "{regions: {task: estimation, grouping: region, policy: random, budget: {labels: 100000}, "
    "max_in_flight: 60}}"
)
# What is old is forgotten within seconds, so estimates soon follow a labeller who changes their mind.
HALF_LIFE_DAYS = 8 / 86_400
MODEL = (
    f"label_half_life_days: {HALF_LIFE_DAYS}\ntraffic_half_life_days: {HALF_LIFE_DAYS}\n"
    f"draw_half_life_hours: {24 * HALF_LIFE_DAYS}"
)


def truth_of_a_mended_model(number: int) -> str:
    """The model is right 19 times of 20 in every region."""
    return "dog" if number % 20 == 0 else str(prediction(number)["predicted_class"])


class Stream:
    """Predictions that keep coming and a labeller who answers, while a test waits for something."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.labeller = Labeller(deployment)
        self._numbers = itertools.count(step=200)

    def until(self, condition: Callable[[], Any], *, seconds: float, what: str) -> Any:
        """Go on until the condition is true; its value."""

        def turn() -> Any:
            number = next(self._numbers)
            self.deployment.send_predictions(range(number, number + 200))
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
    streaming = Stream(deployment)
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


def set_reference(deployment: Deployment) -> None:
    """What is predicted until now is the reference, as `credence reference set` makes it."""
    keys = model_keys(deployment.settings, "sorter")
    now = time.time()
    ReferenceStore(deployment.connection, keys).set(ReferenceWindow(-math.inf, now, now))


def test_a_region_that_is_confirmed_to_be_bad_is_told_and_once_mended_is_resolved(
    stream: Stream, webhook: WebhookReceiver
) -> None:
    name = "CredenceGroupAccuracyLowConfirmed"

    def notified(status: str) -> list[dict[str, Any]]:
        return webhook.alerts(status=status, alertname=name, group="south")

    firing = stream.until(lambda: notified("firing"), seconds=120, what="the alert")[0]
    assert firing["labels"] == {
        "alertname": name,
        "severity": "critical",
        "environment": "test",
        "job": "credence",
        "model": "sorter",
        "grouping": "region",
        "group": "south",
    }
    reported = firing["annotations"]
    assert "is below its target (80%)" in reported["description"]
    assert "The false discovery rate of all confirmed findings" in reported["description"]
    assert reported["runbook_url"] == f"https://credence.example/docs/runbooks/{name}"
    assert (ROOT / f"docs/runbooks/{name}.md").is_file()
    assert reported["page_url"] == "https://credence.example/?model=sorter&grouping=region&group=south"
    dashboard = "/d/credence-model?var-model=sorter&var-grouping=region&var-group=south"
    assert reported["dashboard_url"].endswith(dashboard)

    def told_to() -> set[str]:
        # What it says may have changed between the two.
        return {
            post["path"]
            for post in webhook.payloads
            if firing["fingerprint"] in {alert["fingerprint"] for alert in post["alerts"]}
        }

    stream.until(lambda: told_to() == {"/sre-page", "/model-owner"}, seconds=30, what="both receivers")
    stream.labeller.truth = truth_of_a_mended_model
    set_reference(stream.deployment)
    stream.until(lambda: notified("resolved"), seconds=120, what="the end of the alert")
    # Of the north's labels so much is certain. That they ever seem to decline, evidence tells of some runs.
    for alertname in (name, "CredenceGroupAccuracyLow"):
        assert not webhook.alerts(alertname=alertname, group="north")
