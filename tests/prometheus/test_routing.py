"""Who is notified of what, by a real Alertmanager with the committed routes."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from committed_alerting import ALERTMANAGER_FILE, routing_to
from harness import wait_for
from missing_programs import program
from monitoring_servers import Alertmanager, StartAlertmanager, WebhookReceiver


def alert(name: str, severity: str = "warning", **labels: str) -> dict[str, Any]:
    """An alert as Prometheus posts it."""
    return {
        "labels": {"alertname": name, "severity": severity, "job": "credence"} | labels,
        "annotations": {
            "summary": f"{name} summary.",
            "description": f"{name} description.",
            "page_url": "https://credence.example/?model=m",
            "dashboard_url": "https://grafana.example/d/credence-model",
            "runbook_url": f"https://credence.example/docs/runbooks/{name}",
        },
    }


@pytest.fixture
def alertmanager(start_alertmanager: StartAlertmanager, webhook: WebhookReceiver) -> Alertmanager:
    """An Alertmanager with the committed routes."""
    return start_alertmanager(routing_to(webhook))


def notified_alerts(
    alertmanager: Alertmanager, webhook: WebhookReceiver, alerts: list[dict[str, Any]]
) -> set[str]:
    """Which of the alerts arrive, by name and model, when all are posted together.

    Alertmanager says of every alert whether it is inhibited; all others are waited for.
    """
    alertmanager.post(alerts)

    def settled() -> bool:
        known = alertmanager.alerts()
        active = [found for found in known if found["status"]["state"] == "active"]
        return len(known) == len(alerts) and all(webhook.alerts(**found["labels"]) for found in active)

    wait_for(settled, seconds=30, what="every alert that is not inhibited at the webhook")
    return {f"{a['labels']['alertname']} {a['labels'].get('model', '')}".strip() for a in webhook.alerts()}


def test_an_alert_on_a_whole_model_silences_that_models_groups_alone(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceModelAccuracyLow", model="m", grouping="all", group="all"),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="south"),
            alert("CredenceGroupMiscalibrated", model="m", grouping="region", group="south"),
            alert("CredenceLabelsStale", model="m"),
            alert("CredenceGroupAccuracyLow", model="n", grouping="region", group="south"),
        ],
    ) == {"CredenceModelAccuracyLow m", "CredenceLabelsStale m", "CredenceGroupAccuracyLow n"}


def test_what_is_confirmed_of_a_group_silences_what_is_probable_of_it_and_of_no_other(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    south, north = ({"model": "m", "grouping": "region", "group": group} for group in ("south", "north"))
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceGroupAccuracyLowConfirmed", "critical", **south),
            alert("CredenceGroupAccuracyLow", **south),
            alert("CredenceGroupMiscalibrationConfirmed", "critical", **south),
            alert("CredenceGroupMiscalibrated", **south),
            alert("CredenceGroupChanged", "critical", **south),
            alert("CredenceGroupDeclineConfirmed", "critical", **south),
            alert("CredenceGroupAccuracyDropped", **south),
            alert("CredenceGroupAccuracyDropped", **north),
        ],
    ) == {
        "CredenceGroupAccuracyLowConfirmed m",
        "CredenceGroupMiscalibrationConfirmed m",
        "CredenceGroupChanged m",
        "CredenceGroupAccuracyDropped m",
    }
    assert not webhook.alerts(alertname="CredenceGroupAccuracyDropped", group="south")


def test_a_model_that_is_probably_inaccurate_silences_nothing_that_is_confirmed(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceModelAccuracyLow", model="m", grouping="all", group="all"),
            alert(
                "CredenceGroupAccuracyLowConfirmed", "critical", model="m", grouping="region", group="south"
            ),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="north"),
        ],
    ) == {"CredenceModelAccuracyLow m", "CredenceGroupAccuracyLowConfirmed m"}


def test_a_model_whose_inaccuracy_is_confirmed_silences_its_groups(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    whole = {"model": "m", "grouping": "all", "group": "all"}
    south = {"model": "m", "grouping": "region", "group": "south"}
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceGroupAccuracyLowConfirmed", "critical", **whole),
            alert("CredenceModelAccuracyLow", **whole),
            alert("CredenceGroupAccuracyLowConfirmed", "critical", **south),
            alert("CredenceGroupChanged", "critical", **south),
        ],
    ) == {"CredenceGroupAccuracyLowConfirmed m"}
    assert not webhook.alerts(group="south")


def test_scores_that_are_wrong_everywhere_silence_wrong_scores_of_groups_but_not_their_accuracy(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceModelMiscalibrated", model="m", grouping="all", group="all"),
            alert("CredenceGroupMiscalibrated", model="m", grouping="region", group="south"),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="south"),
        ],
    ) == {"CredenceModelMiscalibrated m", "CredenceGroupAccuracyLow m"}


def test_old_beliefs_silence_what_is_said_of_their_model_alone(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceSnapshotStale", "critical", model="m"),
            alert("CredenceModelAccuracyLow", model="m", grouping="all", group="all"),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="south"),
            alert("CredencePerformanceTargetMissed", "critical", model="m", assessment="spam", measure="f1"),
            alert("CredenceEnsembleMemberTargetMissed", model="m", assessment="votes", member="knn"),
            alert("CredenceLabelsStale", model="m"),
            alert("CredenceLabelsStale", model="n"),
            alert("CredenceConsumerLagging", topic="labels"),
        ],
    ) == {"CredenceSnapshotStale m", "CredenceLabelsStale n", "CredenceConsumerLagging"}


def test_a_deployment_that_does_not_answer_silences_all_that_is_said_of_it_and_nothing_of_others(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    assert notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceTargetAbsent", "critical"),
            alert("CredenceSnapshotStale", "critical", model="m"),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="south"),
            alert("CredenceNoLeader"),
            alert("CredenceNoLeader", job="other"),
            alert("CredenceGroupAccuracyLow", model="o", job="other", grouping="region", group="south"),
        ],
    ) == {"CredenceTargetAbsent", "CredenceNoLeader", "CredenceGroupAccuracyLow o"}
    assert not webhook.alerts(alertname="CredenceNoLeader", job="credence")


def test_a_prometheus_that_knows_no_credence_silences_what_it_still_says(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    absent = alert("CredenceTargetAbsent", "critical", job="")
    del absent["labels"]["job"]
    stale = alert("CredenceSnapshotStale", "critical", model="m")
    assert notified_alerts(alertmanager, webhook, [absent, stale]) == {"CredenceTargetAbsent"}


def test_all_that_is_wrong_with_one_model_is_one_message(
    alertmanager: Alertmanager, webhook: WebhookReceiver
) -> None:
    notified_alerts(
        alertmanager,
        webhook,
        [
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="south"),
            alert("CredenceGroupAccuracyLow", model="m", grouping="region", group="east"),
            alert("CredenceLabelsStale", model="m"),
            alert("CredenceLabelsStale", model="n"),
        ],
    )
    assert sorted(len(post["alerts"]) for post in webhook.payloads) == [1, 3]


def test_a_message_says_what_where_and_what_to_do(
    start_alertmanager: StartAlertmanager, webhook: WebhookReceiver
) -> None:
    alertmanager = start_alertmanager(routing_to(webhook, slack=True))
    alertmanager.post([alert("CredenceLabelsStale", model="m")])
    wait_for(lambda: webhook.payloads, seconds=20, what="the message")
    message = webhook.payloads[0]["attachments"][0]
    assert message["title"] == "[1 firing] model m: CredenceLabelsStale"
    assert message["title_link"] == "https://credence.example/?model=m"
    assert message["text"].strip().splitlines() == [
        "CredenceLabelsStale summary.",
        "CredenceLabelsStale description.",
        "Page: https://credence.example/?model=m",
        "Dashboard: https://grafana.example/d/credence-model",
        "Runbook: https://credence.example/docs/runbooks/CredenceLabelsStale",
    ]


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (["alertname=CredenceModelAccuracyLow", "severity=warning", "model=m"], "model-owner"),
        (["alertname=CredenceGroupChanged", "severity=critical", "model=m"], "sre-page,model-owner"),
        (["alertname=CredenceGroupAccuracyLow", "severity=warning", "model=m"], "model-owner"),
        (
            ["alertname=CredencePerformanceTargetMissed", "severity=critical", "model=m"],
            "sre-page,model-owner",
        ),
        (
            ["alertname=CredenceEnsembleMemberTargetMissed", "severity=warning", "model=m", "member=knn"],
            "model-owner",
        ),
        (
            [
                "alertname=CredenceEnsembleMemberTargetMissed",
                "severity=warning",
                "model=m",
                "member=ensemble",
            ],
            "sre-page,model-owner",
        ),
        (["alertname=CredenceTargetAbsent", "severity=critical"], "sre-page,nobody"),
        (["alertname=CredenceConsumerLagging", "severity=warning"], "sre"),
        (["alertname=CredenceVendorApiFailing", "severity=warning", "vendor=acme"], "sre"),
        (["alertname=CredencePoolExhausted", "severity=info", "model=m"], "nobody"),
        (["alertname=SomethingElse", "severity=critical"], "sre"),
    ],
)
@pytest.mark.usefixtures("alertmanager")
def test_severity_and_model_decide_who_is_told(labels: list[str], receivers: str) -> None:
    amtool = program("amtool", package="prometheus-alertmanager")
    route = subprocess.run(
        [amtool, "config", "routes", "test", f"--config.file={ALERTMANAGER_FILE}", *labels],
        capture_output=True,
        text=True,
        check=True,
    )
    assert route.stdout.strip() == receivers
