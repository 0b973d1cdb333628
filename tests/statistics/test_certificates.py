"""Certificates: bets that learn from all groups, and are fair whatever they learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.statistics.certificates import CertificateTest, Collected, RunningCertificates

TARGETS = st.floats(0.02, 0.999)
GROUPS = 3
Labels = list[tuple[int, bool]]
LABELS = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.booleans()), max_size=40)


def none(groups: int = GROUPS) -> Collected:
    return CertificateTest(0.9).collected(*np.zeros((3, 1, groups)))


def after(test: CertificateTest, labels: Labels, before: Collected | None = None) -> Collected:
    groups = np.array([[group for group, _ in labels]], np.intp)
    correct = np.array([[correct for _, correct in labels]], np.bool_)
    if before is None:
        before = test.collected(*np.zeros((3, 1, GROUPS)))
    return test.advance(before, groups, correct)


def gain(test: CertificateTest, known: Collected, group: int, *, correct: bool) -> float:
    """Factor by which a label changes the e-value of its group."""
    more = after(test, [(group, correct)], known)
    return math.exp(more.log_e[0, group] - known.log_e[0, group])


@given(target=TARGETS, labels=LABELS, group=st.integers(0, GROUPS - 1), shortfall=st.floats(0, 1))
def test_one_more_label_does_not_raise_evidence_on_average_if_the_group_misses_the_target(
    target: float, labels: Labels, group: int, shortfall: float
) -> None:
    test, accuracy = CertificateTest(target), target * (1 - shortfall)
    known = after(test, labels)
    mean = sum(
        chance * gain(test, known, group, correct=correct)
        for chance, correct in ((accuracy, True), (1 - accuracy, False))
    )
    assert mean <= 1 + 1e-9
    if shortfall == 0:
        assert mean == pytest.approx(1)


@given(target=TARGETS, labels=LABELS, split=st.integers(0, 40))
def test_labels_that_come_in_two_parts_say_the_same_as_all_at_once(
    target: float, labels: Labels, split: int
) -> None:
    test = CertificateTest(target)
    parts = after(test, labels[split:], after(test, labels[:split]))
    for once, twice in zip(after(test, labels), parts, strict=True):
        np.testing.assert_allclose(once, twice, rtol=1e-9, atol=1e-9)


@given(target=TARGETS, labels=LABELS, more=LABELS)
def test_evidence_continues_from_sums_as_from_the_labels(target: float, labels: Labels, more: Labels) -> None:
    test = CertificateTest(target)
    known = after(test, labels)
    summed = test.collected(known.labels, known.correct, known.log_e)
    for one, other in zip(after(test, more, known), after(test, more, summed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)


def test_many_labels_at_once_are_counted_in_portions() -> None:
    rng, test = np.random.default_rng(1), CertificateTest(0.9)
    groups, correct = rng.integers(0, GROUPS, (1, 40_000)), rng.random((1, 40_000)) < 0.92
    once = test.advance(none(), groups, correct)
    known = none()
    for begin in range(0, 40_000, 7_000):
        part = slice(begin, begin + 7_000)
        known = test.advance(known, groups[:, part], correct[:, part])
    np.testing.assert_allclose(once.log_e, known.log_e, rtol=1e-9)


def test_runs_do_not_learn_from_one_another() -> None:
    rng, test = np.random.default_rng(2), CertificateTest(0.8)
    groups, correct = rng.integers(0, GROUPS, (4, 50)), rng.random((4, 50)) < 0.9
    together = test.advance(test.collected(*np.zeros((3, 4, GROUPS))), groups, correct)
    for run in range(4):
        alone = test.advance(none(), groups[[run]], correct[[run]])
        np.testing.assert_allclose(together.log_e[run], alone.log_e[0], rtol=1e-9)


def test_a_group_gains_more_from_a_label_if_other_groups_are_accurate() -> None:
    test = CertificateTest(0.9)
    informed = after(test, [(0, True)] * 200 + [(1, True)] * 200)
    assert gain(test, informed, 2, correct=True) > gain(test, after(test, []), 2, correct=True)


def test_a_group_that_looks_inaccurate_is_bet_on_no_more() -> None:
    test = CertificateTest(0.9)
    known = after(test, [(2, False)] * 30)
    assert gain(test, known, 2, correct=True) == 1
    assert gain(test, known, 2, correct=False) == 1


@pytest.mark.parametrize("target", [0.5, 0.9, 0.99, 0.999])
def test_a_group_without_errors_takes_little_more_than_the_least_number_of_labels(target: float) -> None:
    least = math.log(1 / 0.05) / math.log(1 / target)
    known = after(CertificateTest(target), [(0, True)] * math.ceil(1.5 * least))
    assert known.log_e[0, 0] >= math.log(1 / 0.05)


@pytest.mark.parametrize("target", [1e-6, 0.5, 0.999, 1 - 1e-9])
def test_evidence_is_finite_whatever_the_labels(target: float) -> None:
    for correct in (True, False):
        known = after(CertificateTest(target), [(0, correct)] * 3_000)
        assert all(np.isfinite(column).all() for column in known)


def test_no_label_is_left_once_the_level_is_reached() -> None:
    test = CertificateTest(0.9)
    left = test.labels_left(after(test, [(0, True)] * 60), 0.05)
    assert left[0, 0] == 0
    assert (left[0, 1:] > 0).all()


def test_a_group_that_is_expected_to_miss_its_target_lacks_labels_without_end() -> None:
    test = CertificateTest(0.9)
    assert test.labels_left(after(test, [(0, False)] * 30), 0.05)[0, 0] == np.inf


def test_the_labels_left_are_about_those_that_it_takes() -> None:
    rng, test = np.random.default_rng(3), CertificateTest(0.8)
    known = test.advance(none(1), np.zeros((1, 200), np.intp), (np.arange(200) % 20 > 1)[None])
    expected = test.labels_left(known, 1e-6)[0, 0]
    runs = RunningCertificates(400, 1, target=0.8, alpha=1e-6)
    runs.collected = Collected(*(np.repeat(column, 400, axis=0) for column in known))
    taken = np.full(400, np.nan)
    every = np.arange(400)
    for label in range(1, 2_000):
        runs.observe(every, np.zeros(400, np.intp), rng.random(400) < 0.9)
        taken[np.isnan(taken) & runs.is_given] = label
        if not np.isnan(taken).any():
            break
    # Of 400 runs the mean has a standard error of about 3%; the share of 0.9 is expected to within a point.
    assert taken.mean() == pytest.approx(expected, rel=0.2)


UNLIKE = st.lists(TARGETS, min_size=GROUPS, max_size=GROUPS).map(np.array)


@given(targets=UNLIKE, labels=LABELS, group=st.integers(0, GROUPS - 1))
def test_with_unlike_targets_a_label_of_a_group_at_its_own_target_is_fair(
    targets: np.ndarray, labels: Labels, group: int
) -> None:
    test = CertificateTest(targets)
    known = after(test, labels)
    mean = sum(
        chance * gain(test, known, group, correct=correct)
        for chance, correct in ((targets[group], True), (1 - targets[group], False))
    )
    assert mean == pytest.approx(1)


@given(target=TARGETS, labels=LABELS)
def test_the_same_target_of_every_group_is_one_target(target: float, labels: Labels) -> None:
    one, each = CertificateTest(target), CertificateTest(np.full(GROUPS, target))
    for single, several in zip(after(one, labels), after(each, labels), strict=True):
        np.testing.assert_allclose(single, several, rtol=1e-9, atol=1e-9)
    known = after(one, labels)
    np.testing.assert_array_equal(one.labels_left(known, 0.05), each.labels_left(known, 0.05))


def test_with_unlike_targets_a_group_that_misses_its_own_is_rarely_shown_to_meet_it() -> None:
    rng, runs, alpha = np.random.default_rng(4), 400, 0.1
    targets = np.array([0.95, 0.8, 0.6])
    accuracy = np.array([0.95, 0.95, 0.9])  # the first group does not exceed its target
    groups = np.tile(np.arange(GROUPS), (runs, 100))
    correct = rng.random(groups.shape) < accuracy[groups]
    test = CertificateTest(targets)
    known, shown = test.collected(*np.zeros((3, runs, GROUPS))), np.zeros((runs, GROUPS), np.bool_)
    for begin in range(0, groups.shape[1], 3):
        known = test.advance(known, groups[:, begin : begin + 3], correct[:, begin : begin + 3])
        shown |= known.log_e >= -math.log(alpha)
    # 10% of 400 runs are 40, with a standard deviation of 6.
    assert shown[:, 0].sum() < 40 + 3 * 6
    assert shown[:, 1:].mean() > 0.95
