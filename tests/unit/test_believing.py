"""Beliefs come from sums over outcomes that are alike, and are those of the outcomes one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.assessment.groups import CellTraffic, Labels, assess_grouping
from service.assessment.weights import Asked, balance_weights
from service.believing import labels_of
from service.cells import CellSpace, Grouping
from service.combination_directory import CombinationDirectory
from service.ledger import OutcomeLedger
from service.shard import Traffic
from service.store.facts import OutcomeEntry, TrafficFacts
from service.store.records import Fact, Given

CLASSES = ("cat", "dog", "owl")
REGIONS = ["north", "south", "west"]
SPACE = CellSpace(
    CLASSES,
    (0.25, 0.5, 0.75),
    {
        "all": Grouping("all", "all"),
        "region": Grouping("region", "attribute", attribute="region"),
        "class": Grouping("class", "predicted_class"),
    },
)
DIRECTORY = CombinationDirectory(SPACE, [("__other__",), *((name,) for name in REGIONS)])
DAY = 86_400.0
NOW = 1_800_000_000.0


def outcomes(rng: np.random.Generator, count: int) -> list[OutcomeEntry]:
    """Labels of three askers over sixty days; some predictions are ahead of the clock."""
    entries = []
    for number in range(count):
        predicted = CLASSES[rng.integers(3)]
        true = predicted if rng.random() < 0.7 else [*CLASSES, "yak"][rng.integers(4)]
        predicted_at = NOW - rng.uniform(-0.1, 60) * DAY
        fact = Fact(
            request_id=f"r{number}",
            item_id=f"i{number}",
            grouping=["region", "class", "gone"][number % 3],
            group="",
            predicted_class=predicted,
            score=float(rng.random()),
            attributes={"region": REGIONS[rng.integers(3)]},
            predicted_at=predicted_at,
            requested_at=predicted_at,
        )
        label = Given(true, predicted_at + DAY, "")
        entries.append(OutcomeEntry((1, number), (1, number), f"a{number % 3}", fact, label))
    return entries


def traffic_of(rng: np.random.Generator) -> TrafficFacts:
    """Traffic in two of three cells."""
    cells = len(DIRECTORY) * SPACE.cells_per_combination
    weights = rng.gamma(2.0, size=cells) * (rng.random(cells) < 2 / 3)
    counts = np.ceil(weights).astype(np.int64)
    combinations = DIRECTORY.combinations
    traffic = Traffic(NOW, counts, weights, weights * rng.uniform(0.2, 0.9, cells))
    return TrafficFacts(combinations, [0], traffic, {0: 0}, {0: np.zeros(0)}, {0: 0}, {})


def one_by_one(entries: list[OutcomeEntry], traffic: TrafficFacts, *, decay: float, at: float) -> Labels:
    """Every outcome as a row of its own, weighted as the design says."""
    there = [entry for entry in entries if entry.label.time <= at]
    cells = SPACE.cells(
        combinations=np.array([DIRECTORY.number((e.fact.attributes["region"],)) for e in there], np.intp),
        classes=np.array([CLASSES.index(e.fact.predicted_class) for e in there], np.intp),
        scores=np.array([e.fact.score for e in there]),
    )
    seen = traffic.traffic.counts[cells] > 0
    cells, there = cells[seen], [entry for entry, kept in zip(there, seen, strict=True) if kept]
    freshness = np.array([np.exp(-decay * max(at - e.fact.predicted_at, 0.0)) for e in there])
    asked = []
    for number in range(3):
        members = np.flatnonzero([entry.assessment == f"a{number}" for entry in there])
        grouping = ["region", "class", "all"][number]
        if members.size:
            asked.append(Asked(SPACE.groups(grouping, traffic.combinations)[1], members))
    weights = balance_weights(cells=cells, freshness=freshness, traffic=traffic.traffic.weights, asked=asked)
    known = {name: index for index, name in enumerate(CLASSES)}
    return Labels(
        cells,
        np.array([float(e.fact.predicted_class == e.label.true_class) for e in there]),
        weights,
        freshness,
        np.array([known.get(e.label.true_class, -1) for e in there], np.intp),
    )


@settings(derandomize=True, max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 400),
    half_life_days=st.sampled_from([None, 7.0, 90.0]),
    age_days=st.sampled_from([0.0, 20.0]),
    prior=st.sampled_from(["learned", "informed"]),
)
def test_beliefs_from_sums_are_those_from_every_outcome(
    seed: int, count: int, half_life_days: float | None, age_days: float, prior: str
) -> None:
    rng = np.random.default_rng(seed)
    entries, traffic = outcomes(rng, count), traffic_of(rng)
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place(DIRECTORY)
    decay = 0.0 if half_life_days is None else np.log(2) / (half_life_days * DAY)
    at = NOW - age_days * DAY
    known = labels_of(SPACE, ledger, traffic, decay=decay, run_length=None, now=at)
    direct = one_by_one(entries, traffic, decay=decay, at=at)
    assert known.count == len(direct.cells)
    bins = np.tile(np.arange(4), len(traffic.traffic.counts) // 4)
    for grouping in SPACE.groupings:
        names, groups = SPACE.groups(grouping, traffic.combinations)
        one, other = (
            assess_grouping(
                cell_groups=groups,
                cell_bins=bins,
                group_count=len(names),
                bin_count=4,
                traffic=CellTraffic(traffic.traffic.weights, traffic.traffic.score_sums),
                labels=labels,
                prior=prior,
            )
            for labels in (known.labels, direct)
        )
        np.testing.assert_array_equal(one.labels_counted, other.labels_counted)
        np.testing.assert_array_equal(one.labels_correct, other.labels_correct)
        for found, expected in [
            (one.labels, other.labels),
            (one.accuracy.mean(), other.accuracy.mean()),
            (one.accuracy.variance(), other.accuracy.variance()),
            (one.overall.mean(), other.overall.mean()),
            (one.ece.mean, other.ece.mean),
            (one.ece.proven_mean, other.ece.proven_mean),
        ]:
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_what_was_asked_is_counted_by_the_grouping_of_then() -> None:
    rng = np.random.default_rng(1)
    ledger, traffic = OutcomeLedger(SPACE), traffic_of(rng)
    ledger.fold(outcomes(rng, 300))
    ledger.place(DIRECTORY)
    known = labels_of(SPACE, ledger, traffic, decay=0.0, run_length=None, now=NOW + 9 * DAY)
    assert known.asked.keys() == {"region", "class", "gone"}
    assert sum(known.asked.values()) == known.count == pytest.approx(200, abs=30)


def test_what_was_asked_at_an_earlier_time_is_counted_by_the_labels_of_then() -> None:
    rng = np.random.default_rng(2)
    ledger, traffic = OutcomeLedger(SPACE), traffic_of(rng)
    entries = outcomes(rng, 300)
    ledger.fold(entries)
    ledger.place(DIRECTORY)
    at = NOW - 30 * DAY
    known = labels_of(SPACE, ledger, traffic, decay=0.0, run_length=None, now=at)
    assert 0 < known.count == sum(known.asked.values()) <= sum(entry.label.time <= at for entry in entries)
