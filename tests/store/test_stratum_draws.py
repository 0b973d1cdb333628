"""Labels for error rates are drawn by group and stratum: no estimate is biased, and each draw is evidence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from store_site import NOW, Site, message, record
from test_error_rate_assessments import ASKED, CLASSES, COUNT, POSITIVE, REGION, REGIONS, SCORE, SELECTED

from service.domain.request_order import request_place
from service.monitoring.error_rate_evidence import RateProof
from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection
from service.store.labels import LabelEvent
from service.store.records import decode_fact

RECALL = {
    "rate": "true_positive_rate",
    "limits": {"true_positive_rate": 0.8, "false_positive_rate": 0.25},
    "max_differences": {"false_positive_rate": 0.02},
}


def site_of(connection: Connection, **more: Any) -> Site:
    settings: dict[str, Any] = {
        "classes": list(CLASSES),
        # Ever one in a thousand is out.
        "interval": 0.999,
        "traffic_half_life_days": None,
        "forgetting": {"after_change": False},
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "class": {"by": "predicted_class"},
        },
        "assessments": {"fair": ASKED | RECALL},
    }
    site = Site(connection, {"m": settings | more})
    site.take_in(
        [
            record(
                i,
                message(
                    i,
                    predicted_class=CLASSES[int(SELECTED[i])],
                    score=float(SCORE[i]),
                    attributes={"region": REGIONS[REGION[i]]},
                ),
            )
            for i in range(COUNT)
        ]
    )
    return site


def rounds(site: Site, count: int) -> tuple[ModelSnapshot, list[int]]:
    monitor, seen = site.monitor("m"), []
    for _ in range(count):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        seen += site.answer("m", lambda item: CLASSES[int(POSITIVE[item])])
    return monitor.refresh(NOW), seen


def proof_of(snapshot: ModelSnapshot, rate: str = "false_positive_rate") -> RateProof:
    proof = snapshot.error_rates["fair"].rates[rate].proof  # type: ignore[index]
    assert proof is not None
    return proof


def test_accuracies_hold_although_labels_are_drawn_by_stratum(connection: Connection) -> None:
    snapshot, seen = rounds(site_of(connection), 12)
    drawn, all_of_it = SELECTED[seen].mean(), SELECTED.mean()
    right = SELECTED == POSITIVE
    for name, groups in (("region", REGION), ("class", SELECTED.astype(int))):
        found = snapshot.groupings[name]
        order = [(*REGIONS, *CLASSES).index(group) - (0 if name == "region" else 3) for group in found.groups]
        truth = np.array([right[groups == group].mean() for group in order])
        accuracy = found.accuracy
        assert (accuracy.lower <= truth).all()
        assert (truth <= accuracy.upper).all()
    assert abs(drawn - all_of_it) > 0.05, "the labels are no even sample of the groups"


def test_weights_of_labels_sum_to_the_traffic_of_the_strata_that_they_were_drawn_for(
    connection: Connection,
) -> None:
    snapshot, seen = rounds(site_of(connection), 12)
    plan = snapshot.error_rates["fair"].plan
    bins = np.minimum((SCORE[seen] * 10).astype(int), 9)
    place = REGION[seen] * 20 + SELECTED[seen] * 10 + bins
    counts = np.bincount(place, minlength=60)
    shares = plan.shares * np.bincount(REGION, minlength=3)[:, None] / COUNT
    traffic = np.bincount(REGION * 20 + SELECTED * 10 + np.minimum((SCORE * 10).astype(int), 9), minlength=60)
    assert shares.ravel() == pytest.approx(traffic / COUNT)
    # A label stands for its stratum's share, by the number of labels there: Kish's effective number follows.
    weights = shares.ravel()[place] / counts[place]
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert snapshot.groupings["all"].beliefs.labels[0] == pytest.approx(effective, rel=0.01)


def test_a_request_is_for_a_group_and_its_item_of_a_stratum(connection: Connection) -> None:
    site = site_of(connection)
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    opened = site.reader("m").requests().open
    assert {one.group for one in opened.values()} <= set(REGIONS)
    for request_id, one in opened.items():
        fact = decode_fact(
            site.connection.client.hget(site.keys("m").request(request_id), "fact")  # type: ignore[arg-type]
        )
        said = "selected" if one.predicted_class == "flag" else "not selected"
        assert fact.group.startswith(f"{said} [")
        assert fact.group.endswith(f": {one.attributes['region']}")
        assert fact.estimator
    state = monitor.refresh(NOW).assessments["fair"]
    assert state.awaited.sum() == len(opened)


def test_a_process_that_starts_again_has_the_same_evidence(connection: Connection) -> None:
    site = site_of(connection)
    snapshot, _ = rounds(site, 8)
    again = site.monitor("m").refresh(NOW)
    assert proof_of(again).log_e == pytest.approx(proof_of(snapshot).log_e)
    assert proof_of(again).log_e_difference == pytest.approx(proof_of(snapshot).log_e_difference)


def test_a_label_is_no_evidence_before_earlier_requests_for_its_group_have_ended(
    connection: Connection,
) -> None:
    site = site_of(connection)
    monitor = site.monitor("m")
    monitor.refresh(NOW)
    monitor.ask(epoch=1, now=NOW)
    opened = site.reader("m").requests().open
    waiting = sorted(
        (json.loads(text) for text in site.requests("m").read_outbox().values()),
        key=lambda one: request_place(opened[one["request_id"]].requested_at, one["request_id"]),
    )
    first: dict[str, str] = {}
    for one in waiting:
        first.setdefault(opened[one["request_id"]].group, one["request_id"])
    events = [
        LabelEvent(
            one["request_id"], one["item_id"], "answer", "keep", f"{int(one['item_id']):016x}", NOW, "ana"
        )
        for one in waiting
    ]
    late = [event for event in events if event.request_id in first.values()]
    site.labels("m").apply(0, [event for event in events if event not in late], now=NOW)
    snapshot = monitor.refresh(NOW)
    assert snapshot.outcomes > len(late)
    assert proof_of(snapshot).log_e == pytest.approx(0.0)
    site.labels("m").apply(0, late, now=NOW)
    assert (np.abs(proof_of(monitor.refresh(NOW)).log_e) > 1e-3).any()
