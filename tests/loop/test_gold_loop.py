"""Gold items among the requests, processes are killed, labels come twice: each counts once, and apart."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

from harness import Deploy, RepeatingLabeller, prediction, truth, wait_for

from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import BEGINNING

ITEMS, GOLD, FIRST_GOLD = 40, 8, 5_000
ASSESSMENTS = f"{{all: {{budget: {{labels: {ITEMS + GOLD}}}, lease_seconds: 600, max_in_flight: 7}}}}"


def test_gold_items_are_requested_once_and_their_labels_counted_apart(deploy: Deploy, tmp_path: Path) -> None:
    numbers = range(FIRST_GOLD, FIRST_GOLD + GOLD)
    gold = {prediction(number)["item_id"] for number in numbers}
    file = tmp_path / "gold.jsonl"
    rows = [prediction(number) | {"true_class": truth(number)} for number in numbers]
    file.write_text("\n".join(map(json.dumps, rows)))
    model = f"labels_per_item: {{gold: {{file: {file}, share: 0.4}}}}\n"
    deployment = deploy(assessments=ASSESSMENTS, model=model)
    deployment.send_predictions(range(ITEMS))
    labeller = RepeatingLabeller(deployment)
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready")
        labeller.answer_until(10)
        process.popen.send_signal(signal.SIGKILL)
        process.popen.wait()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready again")

        def all_labelled() -> bool:
            labeller.answer()
            return process.metric('credence_outcomes{model="sorter"}') == ITEMS

        wait_for(all_labelled, seconds=60, what="outcomes of all predictions")
        shown = 'credence_vendor_gold_labels{model="sorter",vendor=""}'
        wait_for(lambda: process.metric(shown) == GOLD, seconds=60, what="gold labels")
        wrong = 'credence_vendor_gold_wrong_mean_ratio{model="sorter",vendor=""}'
        assert process.metric(wrong) == 0
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    assert set(Counter(each.fact.item_id for each in page.labelled).values()) == {1}
    assert {each.fact.item_id for each in page.labelled if each.is_gold} == gold
    requests = deployment.facts().requests()
    assert (sum(requests.budget.values()), requests.open) == (ITEMS + GOLD, {})
    assert requests.tallies["answered", "all"] == ITEMS
    assert requests.tallies["gold_answered", "all"] == GOLD
    ledger = OutcomeLedger(deployment.settings.cell_space("sorter"), may_err=True)
    ledger.fold(page.entries)
    assert len(ledger) == ITEMS
