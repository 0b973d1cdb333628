"""Two people label every item, processes are killed, labels come twice: nothing is lost or double."""

from __future__ import annotations

import signal
from collections import Counter

from harness import Deploy, Deployment, RepeatingLabeller, wait_for

from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import BEGINNING, OutcomeEntry

ITEMS = 30
MODEL = "labels_per_item: {least: 2, most: 2}\n"
ASSESSMENTS = f"{{all: {{budget: {{labels: {2 * ITEMS}}}, lease_seconds: 600, max_in_flight: 7}}}}"


def labels(deployment: Deployment) -> list[OutcomeEntry]:
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    return page.labelled


def test_every_item_is_labelled_by_two_people_once(deploy: Deploy) -> None:
    deployment = deploy(assessments=ASSESSMENTS, model=MODEL)
    deployment.send_predictions(range(ITEMS))
    pair = RepeatingLabeller(deployment)
    for part in range(3):
        with deployment.process("run") as process:
            wait_for(process.ready, seconds=40, what="ready")
            pair.answer_until(15 * (part + 1))
            process.popen.send_signal(signal.SIGKILL)
            process.popen.wait()
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=40, what="ready again")

        def all_labelled() -> bool:
            pair.answer()
            return len(labels(deployment)) == 2 * ITEMS

        wait_for(all_labelled, seconds=60, what="two labels of every item")
        wait_for(
            lambda: process.metric('credence_outcomes{model="sorter"}') == ITEMS, seconds=30, what="outcomes"
        )
    given = labels(deployment)
    by_item = Counter((entry.fact.item_id, entry.label.annotator) for entry in given)
    assert set(by_item.values()) == {1}
    assert Counter(item for item, _ in by_item) == dict.fromkeys({item for item, _ in by_item}, 2)
    requests = deployment.facts().requests()
    assert (sum(requests.budget.values()), requests.open) == (2 * ITEMS, {})
    ledger = OutcomeLedger(deployment.settings.cell_space("sorter"), may_err=True)
    ledger.fold(given)
    ledger.place()
    items = ledger.labelled_items(at=1e12)
    assert items is not None
    assert Counter(items.items.tolist()) == dict.fromkeys(range(ITEMS), 2)
