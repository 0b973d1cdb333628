"""A group that comes into the traffic changes nothing of what is known of the others' error rates."""

from __future__ import annotations

import pytest
from store_site import NOW, Site, message, record

from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection

RATE = "false_positive_rate"
MODELS = {
    "m": {
        "classes": ["cat", "dog"],
        "score_bins": 1,
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {
            "fair": {
                "task": "error_rates",
                "grouping": "region",
                "positive_class": "cat",
                "policy": "random",
                "budget": {"labels": 10_000},
                "max_in_flight": 400,
                "limits": {RATE: 0.5},
                "group_limits": {"west": {RATE: 0.6}},
            }
        },
    }
}


def test_a_first_prediction_of_a_group_with_a_limit_of_its_own_ends_no_evidence(
    connection: Connection,
) -> None:
    site = Site(connection, MODELS, bounds={"outcomes": 1_000})
    records = [
        record(
            n,
            message(n, attributes={"region": "north"}, predicted_class="cat" if n % 2 else "dog", score=0.7),
        )
        for n in range(1_600)
    ]
    records.append(record(1_600, message(1_600, attributes={"region": "west"})))
    monitor = site.monitor("m")
    for turn in range(8):
        site.take_in(records[: 200 * (turn + 1)])
        monitor.refresh(NOW + 10 * turn)
        monitor.ask(epoch=1, now=NOW + 10 * turn)
        site.answer("m", lambda item: "cat" if item % 5 else "dog")
    assert connection.client.exists(site.keys("m").evidence)
    before = log_e_of_north(monitor.refresh(NOW + 100))
    site.take_in(records)
    assert log_e_of_north(monitor.refresh(NOW + 110)) == pytest.approx(before)


def log_e_of_north(snapshot: ModelSnapshot) -> float:
    rates = snapshot.error_rates["fair"]
    proof = rates.rates[RATE].proof  # type: ignore[index]
    assert proof is not None
    return float(proof.log_e[rates.groups.index("north")])
