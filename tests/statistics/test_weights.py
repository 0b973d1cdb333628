"""Labels asked for one grouping tell of another without bias."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.balance_heuristic import (
    AssessmentLabels,
    effective_counts,
    even_sample_weight,
    inverse,
    label_densities,
)


def balance_weights(cells: np.ndarray, freshness: np.ndarray, asked: list[AssessmentLabels]) -> np.ndarray:
    count = len(asked[0].groups)
    return inverse(
        label_densities(cells=cells, freshness=freshness, assessments=asked, cell_count=count)[cells]
    )


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_for_one_assessment_the_counts_of_its_groups_are_plain(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    cell_groups = np.array([0, 0, 1, 1, 2])
    cells = rng.integers(0, 5, count)
    correct = rng.integers(0, 2, count).astype(float)
    ones = np.ones(count)
    shares = rng.dirichlet(np.ones(3))
    weights = balance_weights(cells, ones, [AssessmentLabels(cell_groups, np.arange(count), shares)])
    groups = cell_groups[cells]
    labels, right = effective_counts(
        groups=groups, group_count=3, weights=weights, freshness=ones, correct=correct
    )
    np.testing.assert_allclose(labels, np.bincount(groups, minlength=3), rtol=1e-12)
    np.testing.assert_allclose(right, np.bincount(groups, correct, minlength=3), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**32), st.floats(1e-6, 1e6))
def test_only_the_proportions_of_weights_matter(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 3, 40), rng.uniform(0.1, 5, 40)
    rest = {"group_count": 3, "freshness": rng.uniform(0.1, 1, 40), "correct": rng.integers(0, 2, 40) * 1.0}
    plain = effective_counts(groups=groups, weights=weights, **rest)
    scaled = effective_counts(groups=groups, weights=weights * scale, **rest)
    np.testing.assert_allclose(plain, scaled, rtol=1e-9)


@given(st.integers(0, 2**32))
def test_the_order_of_labels_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 3, 40), rng.uniform(0.1, 5, 40)
    freshness, correct = rng.uniform(0.1, 1, 40), rng.integers(0, 2, 40) * 1.0
    order = rng.permutation(40)
    there = effective_counts(
        groups=groups, group_count=3, weights=weights, freshness=freshness, correct=correct
    )
    then = effective_counts(
        groups=groups[order],
        group_count=3,
        weights=weights[order],
        freshness=freshness[order],
        correct=correct[order],
    )
    np.testing.assert_allclose(there, then, rtol=1e-9)


def test_unequal_weights_count_as_kish_says() -> None:
    weights = np.array([1.0, 1.0, 4.0])
    labels, _ = effective_counts(
        groups=np.zeros(3, np.intp),
        group_count=1,
        weights=weights,
        freshness=np.ones(3),
        correct=np.ones(3),
    )
    assert labels[0] == weights.sum() ** 2 / (weights**2).sum()


def test_labels_that_are_all_old_lose_their_say() -> None:
    labels, right = effective_counts(
        groups=np.zeros(8, np.intp),
        group_count=1,
        weights=np.ones(8),
        freshness=np.full(8, 0.25),
        correct=np.ones(8),
    )
    assert labels[0] == 2.0
    assert right[0] == 2.0


def test_labels_asked_by_class_do_not_bias_the_accuracy_of_regions() -> None:
    rng = np.random.default_rng(5)
    # Two classes by two regions; the classes differ in accuracy, and regions in their mix of classes.
    traffic = np.array([0.45, 0.05, 0.1, 0.4])
    accuracy = np.array([0.95, 0.95, 0.6, 0.6])
    by_class, by_region = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    truth = np.array(
        [(traffic * accuracy)[by_region == r].sum() / traffic[by_region == r].sum() for r in (0, 1)]
    )
    plain, weighted = [], []
    for _ in range(300):
        # Class 1 is asked nine times as often as class 0.
        asked_class = (rng.random(200) < 0.9).astype(int)
        cells = np.array(
            [
                rng.choice(4, p=np.where(by_class == c, traffic, 0) / traffic[by_class == c].sum())
                for c in asked_class
            ]
        )
        correct = (rng.random(200) < accuracy[cells]).astype(float)
        ones = np.ones(200)
        drawn = AssessmentLabels(by_class, np.arange(200), np.bincount(by_class, weights=traffic))
        weights = balance_weights(cells, ones, [drawn])
        for estimates, used in ((plain, ones), (weighted, weights)):
            n, r = effective_counts(
                groups=by_region[cells], group_count=2, weights=used, freshness=ones, correct=correct
            )
            estimates.append(r / n)
    # Standard error of the mean of 300 runs is about 0.003.
    np.testing.assert_allclose(np.mean(weighted, axis=0), truth, atol=0.012)
    assert abs(np.mean(plain, axis=0)[0] - truth[0]) > 0.1


class Joint(NamedTuple):
    """Traffic by two attributes, labels that some groupings asked for, and what is kept of them.

    Attributes:
        traffic: of every joint cell [R, C].
        cells: joint cell of every label, by number [n].
        freshness: of every label [n].
        asked: groups of every joint cell by a grouping, and the labels that it asked for.
    """

    traffic: np.ndarray
    cells: np.ndarray
    freshness: np.ndarray
    asked: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def drawn(cls, seed: int, askings: int) -> Joint:
        rng = np.random.default_rng(seed)
        rows, columns = rng.integers(1, 5, 2)
        traffic = rng.gamma(0.5, size=(rows, columns)) * (rng.random((rows, columns)) < 0.8)
        traffic[0, 0] += 0.1
        numbers = np.arange(traffic.size)
        groupings = [numbers // columns, numbers % columns, np.zeros(traffic.size, np.intp)]
        cells = rng.choice(np.flatnonzero(traffic.ravel() > 0), 40)
        asked = [(groupings[k % 3], np.flatnonzero(rng.random(40) < 0.5)) for k in range(askings)]
        return cls(traffic, cells, rng.uniform(0.05, 1, 40), [pair for pair in asked if pair[1].size])


def joint_weights(joint: Joint) -> np.ndarray:
    """The balance heuristic by the product of all attributes: a density for every joint cell."""
    share = joint.traffic.ravel() / joint.traffic.sum()
    density = np.zeros(share.size)
    for groups, labels in joint.asked:
        size = int(groups.max()) + 1
        of = groups[joint.cells[labels]]
        drawn = np.maximum(np.bincount(of, weights=joint.freshness[labels], minlength=size), 1.0)
        drawn[np.bincount(of, minlength=size) == 0] = 0.0
        density += (drawn / np.maximum(np.bincount(groups, weights=share, minlength=size), 1e-12))[groups]
    return 1 / np.maximum(density[joint.cells], np.finfo(float).tiny)


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_weights_from_marginal_tables_are_those_from_the_joint_table(seed: int, askings: int) -> None:
    joint = Joint.drawn(seed, askings)
    share = joint.traffic.ravel() / joint.traffic.sum()
    present, label_cells = np.unique(joint.cells, return_inverse=True)
    asked = []
    for groups, labels in joint.asked:
        # Only groups with traffic have numbers, in the order of another table.
        shares = np.bincount(groups, weights=share)
        order = np.flatnonzero(shares > 0)[::-1]
        numbers = np.full(len(shares), len(order))
        numbers[order] = np.arange(len(order))
        asked.append(AssessmentLabels(numbers[groups[present]], labels, shares[order]))
    found = balance_weights(label_cells, joint.freshness, asked)
    np.testing.assert_allclose(found, joint_weights(joint), rtol=1e-9)


def test_a_cell_without_a_group_gets_nothing_from_the_grouping() -> None:
    groups = np.array([0, 1, 1])
    density = label_densities(
        cells=np.array([0, 0, 1]),
        freshness=np.ones(3),
        assessments=[AssessmentLabels(groups, np.arange(3), np.array([0.5]))],
        cell_count=3,
    )
    assert density.tolist() == [4.0, 0.0, 0.0]


STRATA, PARTS = 4, 3
OF_STRATUM = np.repeat(np.arange(STRATA), PARTS)
REGIONS = OF_STRATUM // 2
PART = np.tile(np.arange(PARTS), STRATA)


def told_with_known_parts(
    traffic: np.ndarray, *, evenly: float, by_region: np.ndarray, by_part: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What labels tell of every cell in all, as a share of its traffic, if each number comes as expected.

    Args:
        traffic: of every cell [cells].
        evenly: labels of every region of which the part is not known.
        by_region: labels of every region of which it is.
        by_part: labels of every part.

    Returns:
        Of labels whose part is not known, of the others, and the say of the former; each [cells].
    """
    share = traffic / traffic.sum()

    def shares(groups: np.ndarray) -> np.ndarray:
        return np.asarray(np.bincount(groups, weights=share))

    def expected(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (labels / shares(groups))[groups] * share

    even = expected(REGIONS, np.full(2, evenly))
    uneven = [expected(REGIONS, by_region), expected(PART, by_part)]
    densities = [
        label_densities(
            cells=np.arange(len(share)),
            freshness=labels,
            assessments=[AssessmentLabels(groups, np.flatnonzero(labels), shares(groups))],
            cell_count=len(share),
        )
        for groups, labels in ((REGIONS, even), (REGIONS, uneven[0]), (PART, uneven[1]))
    ]
    known = densities[1] + densities[2]
    strata = np.arange(STRATA) * PARTS
    within = share / shares(OF_STRATUM)[OF_STRATUM]
    say = even_sample_weight(
        even=densities[0][strata],
        parts=[(within[strata + part], known[strata + part]) for part in range(PARTS)],
        unlabelled=float(share[known == 0].sum()),
    )[OF_STRATUM]
    none = np.zeros(len(share))
    of_even = np.divide(say * even, densities[0], out=none.copy(), where=densities[0] > 0) / share
    of_known = np.divide((1 - say) * sum(uneven), known, out=none.copy(), where=known > 0) / share
    return of_even, of_known, say


@given(st.integers(0, 2**32), st.floats(5, 500), st.booleans())
def test_labels_of_unknown_and_of_known_parts_count_every_part_by_its_traffic(
    seed: int, evenly: float, regions: bool
) -> None:
    rng = np.random.default_rng(seed)
    by_region = rng.uniform(5, 500, 2) * regions
    of_even, of_known, _ = told_with_known_parts(
        rng.uniform(0.1, 1, 12), evenly=evenly, by_region=by_region, by_part=rng.uniform(5, 500, 3)
    )
    np.testing.assert_allclose(of_even + of_known, 1.0, rtol=1e-9)


def test_where_all_labels_were_drawn_evenly_those_of_unknown_parts_weigh_as_the_others() -> None:
    by_region = np.array([30.0, 90.0])
    _, _, say = told_with_known_parts(
        np.linspace(0.1, 1, 12), evenly=60.0, by_region=by_region, by_part=np.zeros(3)
    )
    np.testing.assert_allclose(say, 60 / (60 + by_region)[REGIONS], rtol=1e-12)


def test_alone_either_kind_of_label_has_all_the_say() -> None:
    traffic, parts = np.linspace(0.1, 1, 12), np.full(3, 40.0)
    _, _, none = told_with_known_parts(traffic, evenly=0.0, by_region=np.zeros(2), by_part=parts)
    _, _, every = told_with_known_parts(traffic, evenly=40.0, by_region=np.zeros(2), by_part=np.zeros(3))
    np.testing.assert_array_equal(none, 0.0)
    np.testing.assert_array_equal(every, 1.0)


def test_labels_that_leave_out_a_large_part_have_little_say_and_a_small_one_hardly_matters() -> None:
    parts = np.array([200.0, 200.0, 0.0])
    says = [
        told_with_known_parts(
            np.tile([0.5, 0.5, left_out], STRATA), evenly=100.0, by_region=np.zeros(2), by_part=parts
        )[2]
        for left_out in (0.001, 1.0)
    ]
    whole = told_with_known_parts(
        np.tile([0.5, 0.5, 1e-9], STRATA), evenly=100.0, by_region=np.zeros(2), by_part=parts
    )[2]
    assert np.abs(says[0] - whole).max() < 0.01
    assert says[1].min() > 0.9
