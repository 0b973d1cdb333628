"""Evidence on error rates leaves out draws for several values, and allows for wrong and missing labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from store_site import NOW, Record, Site, message, record

from service.domain.arrays import Flags, Floats
from service.monitoring.error_rate_evidence import RateProof
from service.monitoring.outcome_aggregates import EXPIRED_CLASS
from service.store.connection import Connection
from service.store.labels import LabelEvent

CLASSES = ("keep", "flag")
UNCERTAIN = 2
"""The kind of items that nobody labels."""


def site_of(
    connection: Connection,
    limit: float,
    bounds: dict[str, Any],
    labels_per_item: dict[str, Any] | None = None,
    **assessment: Any,
) -> Site:
    fair = {
        "task": "error_rates",
        "grouping": "region",
        "positive_class": "flag",
        "limits": {"false_positive_rate": limit},
        "budget": {"labels": 5_000},
        "max_in_flight": 100,
        **assessment,
    }
    model = {
        "classes": list(CLASSES),
        "traffic_half_life_days": None,
        "forgetting": {"after_change": False},
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"fair": fair},
        "labels_per_item": labels_per_item or {},
    }
    return Site(connection, {"m": model}, bounds=bounds)


def predictions(selected: Flags, scores: Floats, regions: Any) -> list[Record]:
    return [
        record(
            i,
            message(
                i,
                predicted_class=CLASSES[int(selected[i])],
                score=float(scores[i]),
                attributes={"region": str(regions[i])},
            ),
        )
        for i in range(len(selected))
    ]


def test_draws_for_other_values_are_no_evidence_on_a_value_that_gets_a_row_later(
    connection: Connection,
) -> None:
    rng, count, names = np.random.default_rng(3), 3_000, np.array(["a", "b", "c", "d"])
    rates = np.array([0.38, 0.2, 0.2, 0.98])
    region = rng.choice(4, count, p=[0.36, 0.14, 0.1, 0.4])
    positive = rng.random(count) < 0.4
    selected = rng.random(count) < np.where(positive, 0.7, rates[region])
    scores = np.where(rng.random(count) < 0.5, 0.95, 0.7)
    stream = predictions(selected, scores, names[region])
    few = site_of(connection, 0.4, {"attribute_values": 2}, policy="random")
    few.take_in(stream[:2_000])
    monitor = few.monitor("m")
    for _ in range(6):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        few.answer("m", lambda item: CLASSES[int(positive[item])])
    many = site_of(connection, 0.4, {"attribute_values": 20}, policy="random")
    many.take_in(stream)
    known = many.monitor("m").refresh(NOW).error_rates["fair"]
    assert known is not None
    proof = known.rates["false_positive_rate"].proof
    assert proof is not None
    assert "a" in known.groups
    assert proof.log_e[list(known.groups).index("a")] < np.log(5)


def test_expiry_that_depends_on_score_and_prediction_is_seen_with_labels_by_stratum(
    connection: Connection,
) -> None:
    rng, count = np.random.default_rng(4), 2_000
    kind = rng.choice(3, count, p=[0.5, 0.2, 0.3])
    scores = np.array([0.95, 0.95, 0.55])[kind] + rng.uniform(-0.045, 0.045, count)
    positive = rng.random(count) < np.array([0.05, 0.95, 0.97])[kind]
    site = site_of(connection, 0.1, {}, max_attempts=1, lease_seconds=3_600)
    site.take_in(predictions(kind > 0, scores, np.full(count, "a")))
    monitor, now = site.monitor("m"), NOW
    for _ in range(5):
        monitor.refresh(now)
        monitor.ask(epoch=1, now=now)
        opened = site.reader("m").requests().open
        published = [json.loads(text) for text in site.requests("m").read_outbox().values()]
        items = {one["request_id"]: int(one["item_id"]) for one in published if one["request_id"] in opened}
        answered = [
            LabelEvent(
                *(request_id, str(item), "answer", CLASSES[int(positive[item])], f"{item:016x}", now, "ana")
            )
            for request_id, item in items.items()
            if kind[item] != UNCERTAIN and rng.random() > 0.1
        ]
        site.labels("m").apply(0, answered, now=now)
        now += 4_000
    monitor.ask(epoch=1, now=now)
    assert EXPIRED_CLASS in monitor.refresh(now).unanswered.worst_case


def proof_if_people_err(connection: Connection, labels_per_item: dict[str, Any]) -> RateProof | None:
    """Of group a with a false positive rate of 50% and b with one of 10%, whose limit is 20%."""
    rng, count = np.random.default_rng(5), 2_000
    region = rng.choice(2, count)
    positive = rng.random(count) < 0.4
    selected = rng.random(count) < np.where(positive, 0.8, np.array([0.5, 0.1])[region])
    site = site_of(connection, 0.2, {}, labels_per_item)
    site.take_in(predictions(selected, np.full(count, 0.8), np.array(["a", "b"])[region]))
    monitor, wrong = site.monitor("m"), rng.random(count) < 0.03
    for _ in range(6):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        site.answer("m", lambda item: CLASSES[int(positive[item] != wrong[item])])
    known = monitor.refresh(NOW).error_rates["fair"]
    assert known is not None
    assert list(known.groups) == ["a", "b"]
    return known.rates["false_positive_rate"].proof


def test_what_is_far_beyond_a_limit_is_confirmed_though_some_labels_are_wrong(
    connection: Connection,
) -> None:
    proof = proof_if_people_err(connection, {"reliability": 0.95, "max_error": 0.05})
    assert proof is not None
    assert proof.confirmed.tolist() == [True, False]


def test_there_is_no_evidence_if_labels_may_be_wrong_and_no_bound_is_stated(connection: Connection) -> None:
    assert proof_if_people_err(connection, {"reliability": 0.95}) is None
