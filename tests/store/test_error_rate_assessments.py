"""Error rates of groups: estimated and compared from labels that are requested where groups may differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from store_site import NOW, Record, Site, message, record

from service.domain.assessments import RateName
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection
from service.store.labels import LabelEvent

COUNT = 4_000
CLASSES = ("keep", "flag")
REGIONS = ("east", "north", "south")
FALSE_POSITIVES = {"east": 0.3, "north": 0.5, "south": 0.2}
RATES: tuple[RateName, ...] = (
    "false_positive_rate",
    "false_negative_rate",
    "true_positive_rate",
    "precision",
    "selection_rate",
)
Assessed = tuple[ErrorRatesSnapshot, list[int]]
"""What is known, and the items that were requested."""


def items() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Regions by number, true classes, predicted ones and scores of all items [N]."""
    rng = np.random.default_rng(11)
    region = rng.choice(3, COUNT, p=(0.5, 0.3, 0.2))
    positive = rng.random(COUNT) < 0.4
    false = np.array([FALSE_POSITIVES[name] for name in REGIONS])[region]
    selected = rng.random(COUNT) < np.where(positive, 0.7, false)
    score = np.where(selected == positive, rng.beta(8, 3, COUNT), rng.beta(6, 4, COUNT))
    return region, positive, selected, np.clip(score, 0.5, 1.0)


REGION, POSITIVE, SELECTED, SCORE = items()


def true_rate(rate: RateName, region: int) -> float:
    """Of all items of a region."""
    here = region == REGION
    of: dict[RateName, tuple[np.ndarray, np.ndarray]] = {
        "false_positive_rate": (SELECTED, ~POSITIVE),
        "false_negative_rate": (~SELECTED, POSITIVE),
        "true_positive_rate": (SELECTED, POSITIVE),
        "precision": (POSITIVE, SELECTED),
        "selection_rate": (SELECTED, np.ones(COUNT, bool)),
    }
    counted, among = of[rate]
    return float(counted[among & here].mean())


def stream(first: int = 0, last: int = COUNT) -> list[Record]:
    return [
        record(
            i,
            message(
                i,
                predicted_class=CLASSES[int(SELECTED[i])],
                score=float(SCORE[i]),
                attributes={"region": REGIONS[REGION[i]]},
            ),
        )
        for i in range(first, last)
    ]


ASKED: dict[str, Any] = {
    "task": "error_rates",
    "grouping": "region",
    "positive_class": "flag",
    "limits": {"false_positive_rate": 0.4, "true_positive_rate": 0.5},
    "max_differences": {"false_positive_rate": 0.1},
    "min_ratios": {"selection_rate": 0.9},
    "budget": {"labels": 1_000},
    "max_in_flight": 50,
}
ACCURACY: dict[str, Any] = {"grouping": "region", "budget": {"labels": 1_000}, "max_in_flight": 50}


def configured(connection: Connection, assessment: dict[str, Any]) -> Site:
    settings = {
        "classes": list(CLASSES),
        # Ever one in a thousand is out.
        "interval": 0.999,
        "traffic_half_life_days": None,
        "forgetting": {"after_change": False},
        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
        "assessments": {"fair": assessment},
    }
    return Site(connection, {"m": settings})


def answered(site: Site, rounds: int) -> tuple[ModelSnapshot, list[int]]:
    """What is known after some rounds, and the items that were requested."""
    monitor = site.monitor("m")
    seen: list[int] = []
    for _ in range(rounds):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        seen += site.answer("m", lambda item: CLASSES[int(POSITIVE[item])])
    return monitor.refresh(NOW), seen


def assessed(connection: Connection, rounds: int = 12, **changes: Any) -> Assessed:
    site = configured(connection, ASKED | changes)
    site.take_in(stream())
    snapshot, seen = answered(site, rounds)
    return snapshot.error_rates["fair"], seen


@pytest.fixture(scope="module")
def usual(module_connection: Connection) -> Assessed:
    """What twelve rounds find of the usual assessment, which several tests look at."""
    return assessed(module_connection)


@pytest.mark.parametrize("rate", RATES)
def test_every_rate_of_every_group_is_in_its_interval(usual: Assessed, rate: RateName) -> None:
    found, _ = usual
    estimate = found.rates[rate].estimate
    assert found.groups == list(REGIONS)
    truth = np.array([true_rate(rate, region) for region in range(3)])
    assert (estimate.lower - 1e-9 <= truth).all()
    assert (truth <= estimate.upper + 1e-9).all()


def test_the_selection_rate_is_counted(connection: Connection) -> None:
    found, _ = assessed(connection, rounds=0)
    expected = [true_rate("selection_rate", region) for region in range(3)]
    assert found.rates["selection_rate"].estimate.mean == pytest.approx(expected, abs=0.005)


def test_a_few_predictions_of_a_group_say_little_of_its_selection_rate(connection: Connection) -> None:
    site = configured(
        connection,
        ASKED | {"min_ratios": {"selection_rate": 0.8}, "max_differences": {"selection_rate": 0.1}},
    )
    regions = ["east"] * 400 + ["north"] * 20 + ["south"]
    site.take_in(
        [
            record(i, message(i, predicted_class=CLASSES[i % 2], score=0.7, attributes={"region": region}))
            for i, region in enumerate(regions)
        ]
    )
    rate = answered(site, rounds=0)[0].error_rates["fair"].rates["selection_rate"]
    assert not rate.ratio_too_low
    assert not rate.differs_too_much
    assert rate.difference is not None
    assert rate.difference[0] == 0


def test_values_without_a_row_of_their_own_are_no_group_that_differs(connection: Connection) -> None:
    site = configured(connection, ASKED | {"min_ratios": {"selection_rate": 0.8}})
    regions = ["east", "north"] * 200 + ["__other__"] * 400
    site.take_in(
        [
            record(
                i,
                message(
                    i,
                    predicted_class=CLASSES[region != "__other__"],
                    score=0.7,
                    attributes={"region": f"r{i}" if region == "__other__" else region},
                ),
            )
            for i, region in enumerate(regions)
        ]
    )
    found = answered(site, rounds=0)[0].error_rates["fair"]
    assert not found.rates["selection_rate"].ratio_too_low


def test_what_was_not_seen_yet_may_be_exactly_0(connection: Connection) -> None:
    limits = {"false_positive_rate": 0.0, "false_negative_rate": 0.0, "true_positive_rate": 1.0}
    site = configured(connection, ASKED | {"limits": limits})
    site.take_in(
        [
            record(
                i,
                message(
                    i,
                    predicted_class=CLASSES[int(POSITIVE[i])],
                    score=float(SCORE[i]),
                    attributes={"region": REGIONS[REGION[i]]},
                ),
            )
            for i in range(COUNT)
        ]
    )
    snapshot, seen = answered(site, rounds=4)
    assert len(seen) > 100
    assert not snapshot.problems
    assert (snapshot.error_rates["fair"].rates["false_positive_rate"].estimate.lower == 0).all()
    assert (snapshot.error_rates["fair"].rates["precision"].estimate.upper == 1).all()


def test_of_several_classes_an_item_that_nobody_labels_may_be_positive(connection: Connection) -> None:
    rng = np.random.default_rng(5)
    classes = ("keep", "flag", "refer")
    true = rng.choice(3, COUNT, p=(0.3, 0.4, 0.3))
    predicted = np.where(rng.random(COUNT) < 0.7, true, rng.integers(0, 3, COUNT))
    site = Site(
        connection,
        {
            "m": {
                "classes": list(classes),
                "interval": 0.999,
                "traffic_half_life_days": None,
                "forgetting": {"after_change": False},
                "groupings": {"region": {"by": "attribute", "attribute": "region"}},
                "assessments": {"fair": ASKED | {"max_attempts": 1}},
            }
        },
    )
    site.take_in(
        [
            record(
                i,
                message(
                    i,
                    predicted_class=classes[predicted[i]],
                    score=float(SCORE[i]),
                    attributes={"region": REGIONS[REGION[i]]},
                ),
            )
            for i in range(COUNT)
        ]
    )
    monitor = site.monitor("m")
    for _ in range(6):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
        _answer_or_skip(site, lambda i: classes[true[i]], (true == 1) & (predicted != 1))
    found = monitor.refresh(NOW).error_rates["fair"].rates["false_negative_rate"].estimate
    missed = np.bincount(REGION, (true == 1) & (predicted != 1)) / np.bincount(REGION, true == 1)
    assert (missed <= found.upper).all()


def _answer_or_skip(site: Site, true_class: Callable[[int], str], skipped: np.ndarray) -> None:
    opened = site.reader("m").requests().open
    waiting = [json.loads(text) for text in site.requests("m").read_outbox().values()]
    events = []
    for one in waiting:
        item, request = int(one["item_id"]), one["request_id"]
        if request in opened:
            said = ("skip", "") if skipped[item] else ("answer", true_class(item))
            events.append(LabelEvent(request, str(item), *said, f"{item:016x}", NOW, "ana"))
    site.labels("m").apply(0, events, now=NOW)


def test_a_group_beyond_the_limit_is_found(usual: Assessed) -> None:
    found, _ = usual
    assert found.rates["false_positive_rate"].violated.tolist() == [False, True, False]
    assert not found.rates["true_positive_rate"].violated.any()


def test_evidence_confirms_what_is_far_beyond_a_limit_and_nothing_else(connection: Connection) -> None:
    limits = {"limits": {"false_positive_rate": 0.25}}
    found, _ = assessed(connection, rounds=20, **limits, max_differences={"false_positive_rate": 0.02})
    proof = found.rates["false_positive_rate"].proof
    assert proof is not None
    assert proof.confirmed.tolist() == [False, True, False]
    assert proof.difference_confirmed
    other = found.rates["precision"].proof
    assert other is not None
    assert np.isnan(other.log_e).all()
    assert not other.confirmed.any()


def test_without_labels_the_e_value_is_1(connection: Connection) -> None:
    proof = assessed(connection, rounds=0)[0].rates["false_positive_rate"].proof
    assert proof is not None
    assert proof.log_e == pytest.approx(0)
    assert proof.log_e_difference == pytest.approx(0)


def test_a_limit_of_a_group_replaces_that_of_all(connection: Connection) -> None:
    own = {"north": {"false_positive_rate": 0.9}, "south": {"false_positive_rate": 0.01}}
    found, _ = assessed(connection, group_limits=own)
    assert found.rates["false_positive_rate"].limits.tolist() == [0.4, 0.9, 0.01]
    assert found.rates["false_positive_rate"].violated.tolist() == [False, False, True]


def test_a_difference_above_its_maximum_is_found(usual: Assessed) -> None:
    found, _ = usual
    truth = true_rate("false_positive_rate", 1) - true_rate("false_positive_rate", 2)
    rate = found.rates["false_positive_rate"]
    assert rate.differs_too_much
    assert rate.difference is not None
    assert rate.difference[0] <= truth <= rate.difference[2]


def test_a_ratio_of_counted_rates_needs_no_label(connection: Connection) -> None:
    found, _ = assessed(connection, rounds=0)
    assert found.rates["selection_rate"].ratio_too_low


def test_nothing_is_said_to_be_wrong_without_labels(connection: Connection) -> None:
    limits = {"limits": {"false_positive_rate": 0.001}, "max_differences": {"false_positive_rate": 0.001}}
    found, _ = assessed(connection, rounds=0, **limits)
    assert not found.rates["false_positive_rate"].violated.any()
    assert not found.rates["false_positive_rate"].differs_too_much


def test_labels_are_requested_of_the_groups_that_are_furthest_apart(
    usual: Assessed,
) -> None:
    _, seen = usual
    shares = np.bincount(REGION[seen], minlength=3) / len(seen)
    assert shares[1] + shares[2] > 0.65, "half of the traffic is east, which is in the middle"


def test_where_no_traffic_was_counted_yet_by_prediction_rates_are_not_known(connection: Connection) -> None:
    before = configured(connection, ACCURACY)
    before.take_in(stream(last=COUNT - 1))
    answered(before, rounds=4)
    after = configured(connection, ASKED)
    after.take_in(stream(first=COUNT - 1))
    found = answered(after, rounds=0)[0].error_rates["fair"]
    counted = np.arange(3) == REGION[-1]
    for rate in found.rates.values():
        assert np.isnan(rate.estimate.mean[~counted]).all()
    assert np.isfinite(found.rates["selection_rate"].estimate.mean[counted]).all()
    for rate in found.rates.values():
        assert not rate.violated.any(), "a single prediction says hardly anything"
        assert not (rate.estimate.upper - rate.estimate.lower < 0.1)[counted].any()
    assert found.labels.sum() > 100, "labels count, whatever they were requested for"
