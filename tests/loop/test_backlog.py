"""A backlog that a consumer reads at its start is reference and recent traffic by its own time."""

from __future__ import annotations

import json
import time

from harness import Deploy, Deployment, prediction, wait_for

HOUR = 3_600.0
BACKLOG = 3_000
DRIFT = "drift: {window_hours: 24, reference_predictions: 200}"


def send_backlog(deployment: Deployment) -> None:
    """Predictions whose records are three days old to now, in order; in the second half their scores fall."""
    now = time.time()
    for number in range(BACKLOG):
        sent = prediction(number)
        if number >= BACKLOG / 2:
            sent["score"] = 0.5
        at = now - 72 * HOUR * (1 - number / BACKLOG)
        deployment.producer.send(
            f"{deployment.name}.predictions",
            value=json.dumps(sent).encode(),
            partition=number % 4,
            timestamp_ms=int(at * 1_000),
        )
    deployment.producer.flush()


def test_a_backlog_of_days_has_its_first_day_as_reference_and_its_last_one_as_recent(deploy: Deploy) -> None:
    deployment = deploy(model=DRIFT)
    send_backlog(deployment)
    with deployment.process("run"):
        wait_for(lambda: deployment.predictions_stored() == BACKLOG, seconds=30, what="all of the backlog")
        status = " ".join(deployment.run_command("status").stdout.split())
    assert "Drift: all traffic" in status
    _, marked = deployment.facts().marked_traffic()
    timeline = marked.timeline
    begins = timeline.begins(200)
    # The ends of slots are up to three hours from those of a day.
    of_a_day = timeline.predictions_at(begins + 24 * HOUR)
    assert of_a_day is not None
    assert BACKLOG * 21 / 72 <= of_a_day <= BACKLOG * 24 / 72
