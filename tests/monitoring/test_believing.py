"""Beliefs come from sums over outcomes that are alike, and are those of the outcomes one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_tables import JointCell, traffic_of

from service.domain.cells import CellSpace
from service.domain.groupings import ByAttribute, ByClass, Everything
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groups
from service.monitoring.weighted_labels import WeightedLabels, weigh_labels
from service.statistics.groups import CellTraffic, GroupingBeliefs, Labels, assess_grouping
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

CLASSES = ("cat", "dog", "owl")
REGIONS = ["north", "south", "west"]
SPACE = CellSpace(
    CLASSES,
    (0.25, 0.5, 0.75),
    {
        "all": Everything("all"),
        "region": ByAttribute("region", "region"),
        "class": ByClass("class"),
    },
)
BINS = 4
SHAPE = (len(REGIONS), len(CLASSES), BINS)
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
        label = LabelFact(true, predicted_at + DAY, "")
        entries.append(OutcomeEntry((1, number), (1, number), f"a{number % 3}", fact, label))
    return entries


Joint = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Counts, weights and weighted sums of scores by region, class and score bin [R, C, B]."""


def drawn_traffic(rng: np.random.Generator) -> Joint:
    """Traffic in two of three cells."""
    weights = rng.gamma(2.0, size=SHAPE) * (rng.random(SHAPE) < 2 / 3)
    return np.ceil(weights).astype(np.int64), weights, weights * rng.uniform(0.2, 0.9, SHAPE)


def index_of(ledger: OutcomeLedger, joint: Joint) -> GroupIndex:
    cells = [
        JointCell((REGIONS[r],), c, b, *(column[r, c, b].item() for column in joint))
        for r, c, b in np.ndindex(SHAPE)
    ]
    return GroupIndex(SPACE, traffic_of(SPACE, cells, landmark=NOW), ledger.cells)


def known_of(
    entries: list[OutcomeEntry], joint: Joint, *, decay: float, at: float
) -> tuple[WeightedLabels, GroupIndex]:
    ledger = OutcomeLedger(SPACE)
    ledger.fold(entries)
    ledger.place()
    index = index_of(ledger, joint)
    return weigh_labels(index, ledger, decay=decay, run_length=None, now=at), index


def joint_groups(grouping: str) -> tuple[list[str], np.ndarray]:
    """Names of the groups, and the group of every joint cell [cells]."""
    regions, classes, _ = (axis.ravel() for axis in np.indices(SHAPE))
    if grouping == "region":
        return REGIONS, regions
    return (list(CLASSES), classes) if grouping == "class" else (["all"], regions * 0)


def one_by_one(entries: list[OutcomeEntry], joint: Joint, *, decay: float, at: float) -> Labels:
    """Every outcome as a row of its own, weighted by the densities of joint cells."""
    by = ["region", "class", "all"]
    present = [np.bincount(joint_groups(name)[1], weights=joint[0].ravel()) > 0 for name in by]
    there, cells = [], []
    for entry in entries:
        fact = entry.fact
        place = (
            REGIONS.index(fact.attributes["region"]),
            CLASSES.index(fact.predicted_class),
            int(SPACE.bins(np.array([fact.score]))[0]),
        )
        cell, asker = int(np.ravel_multi_index(place, SHAPE)), int(entry.assessment[1:])
        # Only labels that were drawn for a group that has traffic tell something about it.
        if entry.label.time <= at and present[asker][joint_groups(by[asker])[1][cell]]:
            there.append(entry)
            cells.append(cell)
    of = np.array(cells, np.intp)
    freshness = np.array([np.exp(-decay * max(at - e.fact.predicted_at, 0.0)) for e in there])
    share = joint[1].ravel() / joint[1].sum()
    density = np.zeros(share.size)
    for number, name in enumerate(by):
        members, groups = [entry.assessment == f"a{number}" for entry in there], joint_groups(name)[1]
        if any(members):
            count = int(groups.max()) + 1
            asked = groups[of[members]]
            drawn = np.maximum(np.bincount(asked, weights=freshness[members], minlength=count), 1.0)
            drawn[np.bincount(asked, minlength=count) == 0] = 0.0
            size = np.maximum(np.bincount(groups, weights=share, minlength=count), 1e-12)
            density += (drawn / size * present[number])[groups]
    known = {name: index for index, name in enumerate(CLASSES)}
    return Labels(
        of,
        np.array([float(e.fact.predicted_class == e.label.true_class) for e in there]),
        1 / np.maximum(density[of], np.finfo(float).tiny),
        freshness,
        np.array([known.get(e.label.true_class, -1) for e in there], np.intp),
    )


def believed_by_cells(labels: Labels, joint: Joint, grouping: str, prior: str) -> GroupingBeliefs:
    """Beliefs about the groups that have traffic, from the joint cells."""
    names, groups = joint_groups(grouping)
    present = np.bincount(groups, weights=joint[0].ravel(), minlength=len(names)) > 0
    renumbered = np.maximum(np.cumsum(present) - 1, 0)[groups]
    grouped = present[groups[labels.cells]]
    return assess_grouping(
        cell_groups=renumbered,
        cell_bins=np.indices(SHAPE)[2].ravel(),
        group_count=int(present.sum()),
        bin_count=BINS,
        traffic=CellTraffic(joint[1].ravel(), joint[2].ravel()),
        labels=labels.part(grouped, labels.weights),
        prior=prior,
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
    entries, joint = outcomes(rng, count), drawn_traffic(rng)
    decay = 0.0 if half_life_days is None else np.log(2) / (half_life_days * DAY)
    at = NOW - age_days * DAY
    known, index = known_of(entries, joint, decay=decay, at=at)
    direct = one_by_one(entries, joint, decay=decay, at=at)
    assert known.count == len(direct.cells)
    for grouping in SPACE.groupings:
        one = assess_groups(index[grouping], index.cells.bins, known.labels, prior=prior)
        other = believed_by_cells(direct, joint, grouping, prior)
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
    entries, joint = outcomes(rng, 300), drawn_traffic(rng)
    known, _ = known_of(entries, joint, decay=0.0, at=NOW + 9 * DAY)
    assert known.label_counts.keys() == {"region", "class", "gone"}
    assert sum(known.label_counts.values()) == known.count == len(entries)


def test_what_was_asked_at_an_earlier_time_is_counted_by_the_labels_of_then() -> None:
    rng = np.random.default_rng(2)
    entries, joint = outcomes(rng, 300), drawn_traffic(rng)
    at = NOW - 30 * DAY
    known, _ = known_of(entries, joint, decay=0.0, at=at)
    assert (
        0
        < known.count
        == sum(known.label_counts.values())
        <= sum(entry.label.time <= at for entry in entries)
    )
