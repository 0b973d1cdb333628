"""The whole loop by files: predictions are drawn, and labels by item answer the requests for them."""

from __future__ import annotations

import csv
from pathlib import Path

from harness import Deploy, prediction, truth, wait_for

ITEMS = 300
ASKED = 20
ASSESSMENTS = f"{{all: {{budget: {{labels: {ASKED}}}, lease_seconds: 600, max_in_flight: {ASKED}}}}}"


def test_labels_of_all_items_answer_the_requests_there_are(deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy(assessments=ASSESSMENTS)
    predictions, labels = tmp_path / "predictions.csv", tmp_path / "truth.csv"
    items = [prediction(number) for number in range(ITEMS)]
    with predictions.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "predicted_class", "score", "Region"])
        writer.writerows(
            [i["item_id"], i["predicted_class"], i["score"], i["attributes"]["region"]] for i in items
        )
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label"])
        writer.writerows([item["item_id"], truth(number)] for number, item in enumerate(items))

    renamed = ["--column", "item_id=id"]
    with deployment.process("run") as process:
        sent = deployment.run_command(
            "predictions", "send", str(predictions), *renamed, "--column", "attributes.region=Region"
        )
        assert f"{ITEMS} rows read, {ITEMS} sent" in sent.stdout
        wait_for(lambda: deployment.predictions_stored() == ITEMS, seconds=60, what="the predictions")
        asked = deployment.facts
        wait_for(lambda: len(asked().requests().open) == ASKED, seconds=60, what="label requests")
        answered = deployment.run_command(
            "labels", "send", str(labels), *renamed, "--column", "true_class=label"
        )
        assert f"{ITEMS} rows read, {ASKED} sent" in answered.stdout
        assert f"not requested: {ITEMS - ASKED}" in answered.stdout
        wait_for(
            lambda: process.metric('credence_outcomes{model="sorter"}') == ASKED, seconds=60, what="outcomes"
        )
    assert asked().requests().open == {}
    refused = deployment.run_command("dead-letters", "list", "--json")
    assert refused.stdout == ""
