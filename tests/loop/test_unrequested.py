"""The whole loop of labels that nobody requests: a table of true classes, joined when its hour closes."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

from harness import Deploy, prediction, truth, wait_for

from service.store.outcome_entries import BEGINNING

ITEMS = 200
HOURS_AGO = 3
"""The hour of these predictions may close as soon as it has its labels."""


def test_a_table_of_true_classes_becomes_outcomes_of_all_items(deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy(assessments="{}", model="unrequested_labels: {items: census}\n")
    table, topic = tmp_path / "truth.csv", deployment.settings.kafka.topics.predictions
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "true_class"])
        writer.writerows([prediction(number)["item_id"], truth(number)] for number in range(ITEMS))
    for number in range(ITEMS):
        item = prediction(number)
        arrived = int(1_000 * (time.time() - HOURS_AGO * 3_600))
        value, key = json.dumps(item).encode(), item["item_id"].encode()
        deployment.producer.send(topic, value, key=key, timestamp_ms=arrived)
    deployment.producer.flush()

    with deployment.process("run") as process:
        waiting = 'credence_unrequested_waiting_items{model="sorter"}'
        wait_for(lambda: process.metric(waiting) == ITEMS, seconds=60, what="predictions that wait")
        for _ in range(2):
            sent = deployment.run_command("labels", "send", str(table))
            assert f"{ITEMS} rows read, {ITEMS} sent" in sent.stdout
            assert f"without a request: {ITEMS}" in sent.stdout
        unchanged = 'credence_unrequested_labels_total{model="sorter",result="unchanged"}'
        wait_for(lambda: process.metric(unchanged) == ITEMS, seconds=60, what="the second table")
        wait_for(
            lambda: process.metric('credence_outcomes{model="sorter"}') == ITEMS, seconds=60, what="outcomes"
        )
        wait_for(lambda: process.metric(waiting) == 0, seconds=60, what="the close")
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    assert {entry.fact.item_id: entry.label.true_class for entry in page.labelled} == {
        prediction(number)["item_id"]: truth(number) for number in range(ITEMS)
    }
    assert len(page.entries) == ITEMS
    assert deployment.run_command("dead-letters", "list", "--json").stdout == ""
