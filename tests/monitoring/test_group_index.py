"""Groups of one round: their traffic, and which labels are in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traffic_tables import JointCell, traffic_of

from service.domain.cells import (
    AGREE,
    CHALLENGE,
    DISAGREE,
    MISSING,
    OTHER,
    POSITIVE_SCORE,
    SCORE_BIN,
    CellSpace,
    Challenge,
)
from service.domain.groupings import (
    ALL,
    ByAttribute,
    ByChallenger,
    ByClass,
    ByPositiveScore,
    ByScore,
    BySuperclass,
    Everything,
)
from service.monitoring.group_index import GroupIndex, has_voteless_traffic
from service.monitoring.label_encoding import LabelCells

CLASSES = ("cat", "dog", "owl")
KINDS = {"cat": "pet", "dog": "pet", "owl": "bird"}
REGIONS = ("north", "south", OTHER)
SPACE = CellSpace(
    CLASSES,
    (0.5,),
    {
        ALL: Everything(ALL),
        SCORE_BIN: ByScore(SCORE_BIN),
        "class": ByClass("class"),
        "kind": BySuperclass("kind", superclasses=KINDS),
        "region": ByAttribute("region", "region"),
        CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE),
    },
    challenge=Challenge("v2"),
)
VOTES = {AGREE: "agree", DISAGREE: "disagree", MISSING: MISSING}


def group_of(name: str, cell: JointCell) -> str:
    """The group of predictions of some kind."""
    vote, region = cell.values
    class_name = CLASSES[cell.predicted]
    return {
        ALL: ALL,
        SCORE_BIN: ("[0,0.5)", "[0.5,1]")[cell.score_bin],
        "class": class_name,
        "kind": KINDS[class_name],
        "region": region,
        CHALLENGE: vote,
    }[name]


def labelled(cells: list[tuple[str, str, int, int]], space: CellSpace = SPACE) -> LabelCells:
    """Label cells by vote, region, class and score bin."""
    found = LabelCells(space)
    for vote, region, predicted, score_bin in cells:
        number = found.combination({CHALLENGE: vote, "region": region})
        found.settle()
        found.cells(np.array([number]), np.array([predicted]), np.array([score_bin]))
    return found


joint_cells = st.lists(
    st.builds(
        lambda vote, region, predicted, score_bin, count: JointCell(
            (vote, region), predicted, score_bin, count, count / 2, count / 3
        ),
        st.sampled_from(list(VOTES)),
        st.sampled_from(REGIONS),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 9),
    ),
    max_size=30,
)
places = st.lists(
    st.tuples(
        st.sampled_from(list(VOTES)),
        st.sampled_from([*REGIONS, "west"]),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    max_size=20,
    unique=True,
)


@given(joint_cells, places, st.sampled_from(list(SPACE.groupings)))
def test_groups_have_the_traffic_of_their_cells_and_labels_their_own_group(
    cells: list[JointCell], where: list[tuple[str, str, int, int]], name: str
) -> None:
    index = GroupIndex(SPACE, traffic_of(SPACE, cells), labelled(where))
    groups = index[name]
    present = {group_of(name, cell) for cell in cells if cell.count}
    assert set(groups.names) == present
    for number, group in enumerate(groups.names):
        own = [cell for cell in cells if group_of(name, cell) == group]
        for score_bin in (0, 1):
            there = [cell for cell in own if cell.score_bin == score_bin]
            assert groups.counts[number, score_bin] == sum(cell.count for cell in there)
            assert groups.weights[number, score_bin] == pytest.approx(sum(cell.weight for cell in there))
            assert groups.score_sums[number, score_bin] == pytest.approx(
                sum(cell.score_sum for cell in there)
            )
    if groups.names:
        assert groups.shares.sum() == pytest.approx(1.0)
    for cell, (vote, region, predicted, score_bin) in enumerate(where):
        group = group_of(name, JointCell((vote, region), predicted, score_bin, 1, 1.0, 1.0))
        if name == "region" and group not in index.traffic.tables["region"].rows:
            # Of a value without a row, the traffic is in that of all others.
            group = OTHER
        assert groups.has_group[cell] == (group in present)
        assert groups.numbers[cell] == (groups.names.index(group) if group in present else len(groups.names))


@given(joint_cells, st.sampled_from([ALL, SCORE_BIN, "class", "kind", "region", CHALLENGE]))
def test_what_a_challenger_says_is_known_of_every_group(cells: list[JointCell], name: str) -> None:
    index = GroupIndex(SPACE, traffic_of(SPACE, cells), labelled([]))
    said = index.challenged(name)
    for number, group in enumerate(index[name].names):
        for column, vote in enumerate((AGREE, DISAGREE, MISSING)):
            expected = sum(c.weight for c in cells if group_of(name, c) == group and c.values[0] == vote)
            assert said[number, column] == pytest.approx(expected)


def test_a_label_without_the_attribute_is_not_among_all_other_values() -> None:
    cells = [JointCell((AGREE, OTHER), 0, 0, 5, 5.0, 1.0)]
    index = GroupIndex(SPACE, traffic_of(SPACE, cells), labelled([(AGREE, MISSING, 0, 0)]))
    assert not index["region"].has_group.any()


def test_a_binary_score_of_either_class_is_in_the_bin_of_the_positive_one() -> None:
    positive = ByPositiveScore(POSITIVE_SCORE, positive="spam")
    space = CellSpace(("ham", "spam"), (0.25, 0.75), {POSITIVE_SCORE: positive})
    cells = [JointCell((), 0, 2, 1, 1.0, 0.9), JointCell((), 1, 2, 1, 1.0, 0.9)]
    found = LabelCells(space)
    number = found.combination({})
    found.settle()
    found.cells(np.array([number, number]), np.array([0, 1]), np.array([2, 2]))
    groups = GroupIndex(space, traffic_of(space, cells), found)[POSITIVE_SCORE]
    assert groups.names == ["[0,0.25)", "[0.75,1]"]
    assert groups.cells.tolist() == [0, 1]


@pytest.mark.parametrize(("vote", "expected"), [(AGREE, False), (MISSING, True)])
def test_it_is_known_whether_there_is_traffic_without_votes(vote: str, expected: bool) -> None:
    traffic = traffic_of(SPACE, [JointCell((vote, "north"), 0, 0, 1, 1.0, 0.5)])
    assert has_voteless_traffic(SPACE, traffic) is expected
