"""A backlog that a consumer reads at its start is neither the reference of drift nor recent traffic."""

from __future__ import annotations

import json
import time

from harness import Deploy, Deployment, prediction, wait_for

HOUR = 3_600.0
BACKLOG = 1_000
DRIFT = "drift: {window_hours: 24, reference_predictions: 200}"


def send_backlog(deployment: Deployment) -> None:
    """Predictions whose records are three days old to two, in order."""
    now = time.time()
    for number in range(BACKLOG):
        at = now - 72 * HOUR + 24 * HOUR * number / BACKLOG
        deployment.producer.send(
            f"{deployment.name}.predictions",
            value=json.dumps(prediction(number)).encode(),
            partition=number % 4,
            timestamp_ms=int(at * 1_000),
        )
    deployment.producer.flush()


def predictions_by(deployment: Deployment, purpose: str) -> list[int]:
    """Predictions by the marks of this purpose."""
    marks = deployment.facts().marks()
    return [mark.predictions for name, mark in marks.items() if name.purpose == purpose]


def test_a_backlog_of_days_is_neither_the_reference_nor_recent(deploy: Deploy) -> None:
    deployment = deploy(model=DRIFT)
    send_backlog(deployment)
    with deployment.process("run"):
        wait_for(
            lambda: predictions_by(deployment, "aged") == [BACKLOG], seconds=30, what="all of the backlog"
        )
        assert not predictions_by(deployment, "beginning")
        assert not predictions_by(deployment, "first")
        status = " ".join(deployment.run_command("status").stdout.split())
        assert "it begins with records that are less than 24 hours old" in status
        deployment.send_predictions(range(BACKLOG, BACKLOG + 300))
        (begun,) = wait_for(lambda: predictions_by(deployment, "beginning"), seconds=30, what="the beginning")
        assert begun > BACKLOG
        assert not predictions_by(deployment, "first")
