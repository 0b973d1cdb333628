"""Evidence about many groups at once is that of each alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from service.domain.arrays import Floats
from service.statistics.e_processes import log_e_below
from service.statistics.grouped_e_processes import GroupedLabels, GroupEvidence, assess_evidence
from service.statistics.label_errors import NEVER_WRONG, WrongLabels, stated

GROUPS = 20


def labelled() -> GroupedLabels:
    """More labels than are looked at in one go; one group has none."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 20_000, GROUPS)
    sizes[7] = 0
    groups = np.repeat(np.arange(GROUPS), sizes)
    count = len(groups)
    rank = np.arange(count) - (np.cumsum(sizes) - sizes)[groups]
    return GroupedLabels(
        groups,
        scores=rng.beta(4, 1, count),
        correct=rng.random(count) < 0.8,
        unanswered=np.zeros(count, np.bool_),
        in_reference=rank < 100,
        is_compared=rank >= 100,
        is_counted=np.ones(count, np.bool_),
    )


def of_group(labels: GroupedLabels, group: int) -> GroupedLabels:
    own = labels.part(labels.groups == group)
    return GroupedLabels(**vars(own) | {"groups": own.groups - group})


def assessed(
    labels: GroupedLabels,
    count: int,
    base: GroupEvidence | None = None,
    wrong_labels: WrongLabels = NEVER_WRONG,
    thresholds: Floats | None = None,
) -> GroupEvidence:
    return assess_evidence(
        labels,
        seen=np.zeros(count, np.intp),
        before=GroupEvidence.none(count),
        thresholds=np.full(count, 0.7) if thresholds is None else thresholds,
        alpha=0.05,
        baseline_alpha=np.full(count, 0.001),
        fixed=True,
        base=base or GroupEvidence.none(count),
        wrong_labels=wrong_labels,
    )


def test_labels_that_may_be_wrong_widen_confidence_sequences_and_tell_nothing_of_scores() -> None:
    labels = labelled()
    trusted, doubted = assessed(labels, GROUPS), assessed(labels, GROUPS, wrong_labels=stated(0.05))
    np.testing.assert_allclose(doubted.lower, np.maximum((trusted.lower - 0.05) / 0.95, 0))
    np.testing.assert_allclose(doubted.upper, np.minimum(trusted.upper / 0.95, 1))
    some = trusted.labels > 0
    wrong = (trusted.labels - trusted.correct)[some]
    allowing = log_e_below(trusted.correct[some], wrong, np.full(some.sum(), 0.7 * 0.95))
    np.testing.assert_allclose(doubted.below[some], allowing)
    assert np.isnan(doubted.miscalibrated).all()


def test_portions_are_of_whole_groups_and_all_of_them() -> None:
    labels = labelled()
    portions = list(labels.portions())
    assert len(portions) > 1
    assert all(one.groups[-1] < other.groups[0] for one, other in pairwise(portions))
    for name, column in vars(labels).items():
        np.testing.assert_array_equal(np.concatenate([getattr(some, name) for some in portions]), column)


def test_evidence_about_many_groups_is_that_of_each_alone() -> None:
    labels = labelled()
    together = assessed(labels, GROUPS)
    for group in range(GROUPS):
        alone = assessed(of_group(labels, group), 1)
        for name, column in vars(alone).items():
            expected = pytest.approx(column[0], rel=1e-9, abs=1e-9, nan_ok=True)
            assert getattr(together, name)[group] == expected, name


def test_every_group_is_tested_against_its_own_threshold() -> None:
    labels = labelled()
    thresholds = np.linspace(0.6, 0.9, GROUPS)
    thresholds[3] = np.nan
    together = assessed(labels, GROUPS, thresholds=thresholds)
    for group in range(GROUPS):
        alone = assessed(of_group(labels, group), 1, thresholds=thresholds[[group]])
        for name, column in vars(alone).items():
            expected = pytest.approx(column[0], rel=1e-9, abs=1e-9, nan_ok=True)
            assert getattr(together, name)[group] == expected, name
    assert np.isnan(together.below[[3, 7]]).all()
    assert np.isfinite(np.delete(together.below, [3, 7])).all()


def test_bets_on_a_decline_begin_again_in_the_group_whose_threshold_changed_and_only_there() -> None:
    labels = labelled()
    base = assessed(labels, GROUPS)
    none = labels.part(np.zeros(len(labels.groups), np.bool_))
    thresholds = np.full(GROUPS, 0.7)
    thresholds[2] = 0.6
    now = assessed(none, GROUPS, base=base, thresholds=thresholds)
    assert np.isinf(now.bets[2]).all()
    assert now.baseline[2] != base.baseline[2]
    others = np.arange(GROUPS) != 2
    np.testing.assert_array_equal(now.bets[others], base.bets[others])
    np.testing.assert_array_equal(now.baseline[others], base.baseline[others])


def test_a_checkpoint_that_does_not_say_its_threshold_goes_on() -> None:
    base = assessed(labelled(), GROUPS)
    earlier = replace(base, held_to=np.full(GROUPS, np.nan))
    none = labelled().part(np.zeros(len(labelled().groups), np.bool_))
    now = assessed(none, GROUPS, base=earlier)
    np.testing.assert_array_equal(now.bets, base.bets)
