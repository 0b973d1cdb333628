"""Agreement between people: published examples, closed forms, and what a first label decides."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.arrays import Floats
from service.statistics.label_agreement import (
    SharedLabels,
    agreement,
    inclusion_weights,
    krippendorff_alpha,
)

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: 4 observers, 12 units.
PUBLISHED = [
    "1 2 3 3 2 1 4 1 2 * * *",
    "1 2 3 3 2 2 4 1 2 5 * 3",
    "* 3 3 3 2 3 4 2 2 5 1 *",
    "1 2 3 3 2 4 4 1 2 5 1 *",
]


def labels_of(rows: list[str], weights: Floats | None = None) -> SharedLabels:
    """Labels by person, in rows; `*` is none."""
    table = [row.split() for row in rows]
    found = [
        (item, person, int(table[person][item]))
        for item in range(len(table[0]))
        for person in range(len(table))
        if table[person][item] != "*"
    ]
    items, people, classes = np.array(found).T
    return SharedLabels(items, people, classes, np.ones(len(table[0])) if weights is None else weights)


def alpha(labels: SharedLabels) -> tuple[float, float, float] | None:
    return krippendorff_alpha(labels, mass=0.95, rng=np.random.default_rng(1))


def agreed(labels: SharedLabels, groups: list[int], count: int) -> list[tuple[float, float, float]]:
    """Lower end, estimate and upper end of every group."""
    found = agreement(labels, np.array(groups), count, mass=0.95, rng=np.random.default_rng(1)).estimate
    return list(zip(found.lower.tolist(), found.mean.tolist(), found.upper.tolist(), strict=True))


def test_alpha_is_that_of_krippendorffs_worked_example_with_missing_labels() -> None:
    found = alpha(labels_of(PUBLISHED))
    assert found is not None
    assert found[1] == pytest.approx(0.743, abs=5e-4)  # the digits that are published


def test_alpha_of_two_people_is_scotts_pi_corrected_for_small_samples() -> None:
    first, second = "1 1 1 2 2 1 2 1 1 1", "1 1 2 2 2 1 1 1 1 1"
    shares = np.array([14, 6]) / 20
    pi = (0.8 - (shares**2).sum()) / (1 - (shares**2).sum())
    found = alpha(labels_of([first, second]))
    assert found is not None
    assert found[1] == pytest.approx(1 - (1 - pi) * 19 / 20)


def test_alpha_is_1_if_all_agree_and_its_interval_says_from_how_few_labels() -> None:
    lower, value, upper = alpha(labels_of(["1 2 1 2", "1 2 1 2"]))
    assert (value, upper) == (1.0, 1.0)
    assert lower < 0.5


@pytest.mark.parametrize("rows", [["1 1 1", "1 1 1"], ["1 2 *", "* * 1"], ["1 2 1"]])
def test_there_is_no_alpha_without_shared_items_or_of_one_class(rows: list[str]) -> None:
    assert alpha(labels_of(rows)) is None


def test_an_item_that_stands_for_three_counts_as_three_do() -> None:
    once = labels_of(["1 2 1", "1 1 2"], np.array([3.0, 1.0, 1.0]))
    three_times = labels_of(["1 1 1 2 1", "1 1 1 1 2"])
    assert agreed(once, [0, 0], 1)[0][1] == agreed(three_times, [0, 0], 1)[0][1] == pytest.approx(0.6)


def test_agreement_is_the_share_of_pairs_that_agree() -> None:
    ((lower, mean, upper),) = agreed(labels_of(["1 1 2 1", "1 1 2 2"]), [0, 0], 1)
    assert mean == pytest.approx(0.75)
    assert lower < mean < upper


def test_agreement_of_a_person_is_with_everybody_else() -> None:
    found = agreed(labels_of(["1 1 2 1", "1 1 2 *", "1 2 1 2"]), [0, 1, 2], 3)
    assert [mean for _, mean, _ in found] == pytest.approx(
        [(1 + 0.5 + 0.5 + 0) / 4, (1 + 0.5 + 0.5) / 3, 1 / 4]
    )


def test_who_shares_no_item_has_no_agreement() -> None:
    *_, (_, mean, _) = agreed(labels_of(["1 1 *", "1 1 *", "* * 2"]), [0, 1, 2], 3)
    assert np.isnan(mean)


def test_the_interval_of_people_who_all_agree_ends_at_1_and_has_a_width() -> None:
    ((lower, mean, upper),) = agreed(labels_of(["1 2 1 2 1", "1 2 1 2 1"]), [0, 0], 1)
    assert mean == upper == 1.0
    # Jeffreys' interval of 5 of 5 begins at 0.62; draws of 400 are within 0.05 of it.
    assert lower == pytest.approx(0.62, abs=0.05)


def test_people_of_no_group_count_for_none() -> None:
    ((_, mean, _),) = agreed(labels_of(["1 1", "1 2", "2 1"]), [0, -1, 0], 1)
    assert mean == pytest.approx((0.5 + 0 + 0.5 + 0.5) / 4)


def test_shared_items_stand_for_those_of_their_stratum() -> None:
    strata = np.array([0, 0, 0, 0, 1, 1])
    is_shared = np.array([True, False, False, False, True, True])
    assert inclusion_weights(strata, is_shared).tolist() == [4.0, 0.0, 0.0, 0.0, 1.0, 1.0]


def test_a_stratum_without_shared_items_is_not_represented() -> None:
    assert inclusion_weights(np.array([0, 1]), np.array([False, True])).tolist() == [0.0, 1.0]
