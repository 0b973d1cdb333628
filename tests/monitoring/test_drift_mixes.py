"""Mixes that drift compares: each comes from one table, and sums the cells that tests choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from traffic_tables import JointCell, traffic_of

from service.domain.cells import CHALLENGE, MISSING, OTHER, VOTES, CellSpace, Challenge, Ensemble
from service.domain.groupings import (
    ByAttribute,
    ByChallenger,
    ByClass,
    ByPositiveScore,
    ByScore,
    BySuperclass,
    ByVotes,
    Everything,
)
from service.domain.traffic_counts import TableCounts, TrafficCounts
from service.monitoring.drift_mixes import ComparedMix, GroupedTraffic
from service.statistics.drift import mix_drift

CLASSES = ("ham", "spam", "scam")
GROUPINGS = {
    "all": Everything("all"),
    "score_bin": ByScore("score_bin"),
    "positive_score": ByPositiveScore("positive_score", positive="spam"),
    "class": ByClass("class"),
    "kind": BySuperclass("kind", superclasses={"ham": "good", "spam": "bad", "scam": "bad"}),
    "camera": ByAttribute("camera", "camera"),
    "region": ByAttribute("region", "region"),
}
SPACE = CellSpace(CLASSES, (0.5, 0.9), GROUPINGS)
VOTED = CellSpace(
    CLASSES,
    (0.5, 0.9),
    {**GROUPINGS, VOTES: ByVotes(VOTES, VOTES)},
    ensemble=Ensemble(("m",), "spam"),
)
CAMERAS, REGIONS = ("dock", "gate"), ("north", "south")


def some_cells(seed: int, cameras: Iterable[str] = CAMERAS) -> list[JointCell]:
    """Traffic of all combinations of values, classes and bins."""
    rng = np.random.default_rng(seed)
    return [
        JointCell((camera, region), predicted, score_bin, int(rng.integers(1, 50)), 1.0, 1.0)
        for camera in cameras
        for region in REGIONS
        for predicted in range(len(CLASSES))
        for score_bin in range(3)
    ]


def counts_of(cells: list[JointCell], space: CellSpace = SPACE) -> TrafficCounts:
    return TrafficCounts.of(traffic_of(space, cells))


def group_of(cell: JointCell, grouping: str) -> str:
    """As the definition of every grouping says."""
    bins = ["[0,0.5)", "[0.5,0.9)", "[0.9,1]"]
    name = CLASSES[cell.predicted]
    return {
        "all": "all",
        "score_bin": bins[cell.score_bin],
        "positive_score": bins[cell.score_bin if name == "spam" else 2 - cell.score_bin],
        "class": name,
        "kind": "good" if name == "ham" else "bad",
        "camera": cell.values[0],
        "region": cell.values[1],
    }[grouping]


def kind_of(cell: JointCell, mix: str) -> int:
    return {
        "score": cell.score_bin,
        "predicted_class": cell.predicted,
        "attribute:camera": CAMERAS.index(cell.values[0]) if cell.values[0] in CAMERAS else len(CAMERAS),
        "attribute:region": REGIONS.index(cell.values[1]),
    }[mix]


def summed(cells: list[JointCell], grouping: str, names: list[str], mix: str, kinds: int) -> list[list[int]]:
    found = np.zeros((len(names), kinds), np.int64)
    for cell in cells:
        found[names.index(group_of(cell, grouping)), kind_of(cell, mix)] += cell.count
    return found.tolist()


MIXES = {
    "all": ["score", "predicted_class", "attribute:camera", "attribute:region"],
    "score_bin": ["predicted_class", "attribute:camera", "attribute:region"],
    "positive_score": ["score", "predicted_class"],
    "class": ["score", "attribute:camera", "attribute:region"],
    "kind": ["score", "predicted_class", "attribute:camera", "attribute:region"],
    "camera": ["score", "predicted_class"],
    "region": ["score", "predicted_class"],
}


def mixes(grouping: str, then: list[JointCell], now: list[JointCell]) -> tuple[list[str], list[ComparedMix]]:
    names = sorted({group_of(cell, grouping) for cell in [*then, *now]})
    grouped = GroupedTraffic(SPACE, SPACE.groupings[grouping], names)
    return names, list(grouped.mixes(counts_of(then), counts_of(now)))


@pytest.mark.parametrize("grouping", MIXES)
def test_every_mix_of_a_grouping_sums_what_its_groups_have(grouping: str) -> None:
    then, now = some_cells(1), some_cells(2)
    names, found = mixes(grouping, then, now)
    assert [mix.name for mix in found] == MIXES[grouping]
    for mix in found:
        kinds = mix.recent.shape[1]
        assert mix.reference.tolist() == summed(then, grouping, names, mix.name, kinds)
        assert mix.recent.tolist() == summed(now, grouping, names, mix.name, kinds)


@pytest.mark.parametrize("grouping", ["all", "class", "score_bin"])
def test_new_values_are_one_kind_and_as_far_away_as_they_would_be_one_by_one(grouping: str) -> None:
    then, now = some_cells(1), some_cells(2, (*CAMERAS, "hall", "yard", "attic"))
    names, found = mixes(grouping, then, now)
    (mix,) = (one for one in found if one.name == "attribute:camera")
    assert mix.recent.tolist() == summed(now, grouping, names, mix.name, 3)
    apart = np.array(
        [
            [
                sum(c.count for c in now if group_of(c, grouping) == g and c.values[0] == camera)
                for camera in (*CAMERAS, "hall", "yard", "attic")
            ]
            for g in names
        ]
    )
    reference = np.pad(mix.reference[:, :2], ((0, 0), (0, 3)))
    one_by_one = mix_drift(reference, apart, comparisons=1).distance
    np.testing.assert_allclose(mix_drift(mix.reference, mix.recent, comparisons=1).distance, one_by_one)


def regions(**counts: int) -> TrafficCounts:
    """Counts of an attribute in one score bin; all other tables are empty."""
    names = tuple(OTHER if name == "other" else name for name in counts)
    rows = np.array([[count, 0, 0] for count in counts.values()])
    empty = counts_of([])
    meaning = empty.tables["region", "bins"].meaning
    return TrafficCounts({**empty.tables, ("region", "bins"): TableCounts(meaning, names, rows)})


def test_rows_that_go_to_other_values_do_not_drift_while_the_stable_ones_keep_their_share() -> None:
    grouped = GroupedTraffic(SPACE, SPACE.groupings["all"], ["all"])
    then = regions(north=60, a=5, b=5, c=5, other=25)
    lately = regions(north=60, x=5, y=5, z=5, other=25)
    (mix,) = (one for one in grouped.mixes(then, lately) if one.name == "attribute:region")
    assert mix.reference.tolist() == mix.recent.tolist() == [[60, 40]]


def test_what_the_reference_has_of_a_value_without_a_row_now_is_in_other_groups() -> None:
    grouped = GroupedTraffic(SPACE, SPACE.groupings["region"], [OTHER, "north"])
    scores = grouped.scores(regions(gone=7, north=60, other=25))
    assert scores is not None
    assert scores[:, 0].tolist() == [32, 60]


def test_a_group_that_may_miss_much_of_its_traffic_is_not_compared() -> None:
    counts = regions(north=60, south=500)
    key = ("region", "bins")
    partial = replace(counts.tables[key], missed=np.array([0.2, 0.01]))
    grouped = GroupedTraffic(SPACE, SPACE.groupings["region"], ["north", "south"])
    mix = next(iter(grouped.mixes(counts, TrafficCounts({**counts.tables, key: partial}))))
    assert mix.recent[:, 0].tolist() == mix.reference[:, 0].tolist() == [0, 500]
    scores = grouped.scores(counts)
    assert scores is not None
    assert scores[:, 0].tolist() == [60, 500]


def test_a_value_that_is_new_has_no_reference_and_no_distance() -> None:
    names = ["north", "new"]
    grouped = GroupedTraffic(SPACE, SPACE.groupings["region"], names)
    mix = next(iter(grouped.mixes(regions(north=60), regions(north=60, new=500))))
    estimated = mix_drift(mix.reference, mix.recent, comparisons=1)
    assert np.isnan(estimated.distance).tolist() == [False, True]
    assert estimated.excess[1] == 0


def test_without_its_table_a_grouping_has_no_scores_and_no_mix() -> None:
    counts = counts_of(some_cells(1))
    younger = TrafficCounts({key: table for key, table in counts.tables.items() if key[0] != "camera"})
    grouped = GroupedTraffic(SPACE, SPACE.groupings["camera"], list(CAMERAS))
    assert grouped.scores(younger) is None
    assert list(grouped.mixes(younger, counts)) == []
    everything = GroupedTraffic(SPACE, SPACE.groupings["all"], ["all"])
    assert [mix.name for mix in everything.mixes(younger, counts)] == [
        "score",
        "predicted_class",
        "attribute:region",
    ]


def test_votes_are_compared_in_all_groups_of_classes_and_scores() -> None:
    cells = [
        JointCell((pattern, "dock", "north"), predicted, score_bin, 1 + number, 1.0, 1.0)
        for number, pattern in enumerate(("00", "01", "10", MISSING))
        for predicted in range(3)
        for score_bin in range(3)
    ]
    assert VOTED.attributes == (VOTES, "camera", "region")
    counts = counts_of(cells, VOTED)
    for grouping, size in (("positive_score", 3), ("class", 3), ("all", 1)):
        names = list(dict.fromkeys(VOTED.class_groups(grouping)[0]))  # type: ignore[index]
        found = GroupedTraffic(VOTED, VOTED.groupings[grouping], names).mixes(counts, counts)
        (votes,) = (mix for mix in found if mix.name == "votes")
        assert votes.recent.shape == (size, 5)
        assert votes.recent.sum(axis=0).tolist() == [9, 18, 27, 36, 0]
    by_votes = GroupedTraffic(VOTED, VOTED.groupings[VOTES], sorted({c.values[0] for c in cells}))
    assert [mix.name for mix in by_votes.mixes(counts, counts)] == ["score", "predicted_class"]


def test_agreement_with_a_challenger_is_no_mix() -> None:
    space = CellSpace(
        CLASSES,
        (0.5, 0.9),
        {"all": GROUPINGS["all"], CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE)},
        challenge=Challenge("v2"),
    )
    counts = counts_of([JointCell(("agree",), 0, 0, 5, 1.0, 1.0)], space)
    found = GroupedTraffic(space, space.groupings["all"], ["all"]).mixes(counts, counts)
    assert [mix.name for mix in found] == ["score", "predicted_class"]
