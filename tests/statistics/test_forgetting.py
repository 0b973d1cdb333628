"""What is kept of labels from before a change."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from service.statistics.change_points import DETECTED, FEWEST, ChangePointWeights, change_point_weights

RUN_LENGTH = 1_000
OUTCOMES = st.lists(st.booleans(), min_size=0, max_size=150)


def remains(*groups: list[bool] | np.ndarray, run_length: float = RUN_LENGTH) -> ChangePointWeights:
    sizes = np.array([len(group) for group in groups], dtype=np.intp)
    correct = np.concatenate([np.asarray(group, dtype=np.bool_) for group in groups])
    return change_point_weights(correct=correct, sizes=sizes, run_length=run_length)


def changed_at(number: int, before: float, after: float, *, then: int, seed: int) -> np.ndarray:
    """Outcomes of which so many come before a change of accuracy, and so many then."""
    rng = np.random.default_rng(seed)
    return np.concatenate((rng.random(number) < before, rng.random(then) < after))


def level_prior(labels: np.ndarray) -> tuple[float, float]:
    """Parameters of the Beta prior of the accuracy between changes: 20 labels around the mean."""
    mean = (labels.sum() + 0.5) / (len(labels) + 1)
    return 20 * mean, 20 * (1 - mean)


def marginal(labels: np.ndarray, prior: tuple[float, float]) -> float:
    right, (one, other) = labels.sum(), prior
    return float(special.beta(one + right, other + len(labels) - right) / special.beta(one, other))


def by_every_history(labels: np.ndarray, run_length: float) -> dict[int, float]:
    """Probability of the last change to stand before a label, from all sets of changes; 0: there is none."""
    count, found = len(labels), dict.fromkeys(range(len(labels)), 0.0)
    for size in range(count):
        for changes in combinations(range(1, count), size):
            ends = [0, *changes, count]
            runs = [marginal(labels[begin:end], level_prior(labels)) for begin, end in pairwise(ends)]
            stays = (1 - 1 / run_length) ** count
            found[ends[-2]] += float(np.prod(runs)) * run_length ** -len(changes) * stays
    looked_at = {place: share for place, share in found.items() if place == 0 or count - place >= FEWEST}
    total = sum(looked_at.values())
    return {place: share / total for place, share in looked_at.items()}


def if_rarer(count: int, run_length: float) -> float:
    """What the log odds of a change among so many labels gain if changes are ten times rarer."""
    often, rarely = (1 - (1 - 1 / length) ** count for length in (run_length, 10 * run_length))
    return float(special.logit(rarely) - special.logit(often))


DROP = np.array([1] * 7 + [0] * 6, dtype=np.bool_)
"""So short that all of its histories can be enumerated."""


def test_a_change_is_as_probable_as_all_histories_make_it() -> None:
    places = by_every_history(DROP, 20)
    expected = special.logit(1 - places[0]) + if_rarer(len(DROP), 20)
    assert special.logit(remains(DROP, run_length=20).changed[0]) == pytest.approx(expected)


def test_what_is_kept_has_the_mean_and_the_variance_of_the_mixture_over_places() -> None:
    places = by_every_history(DROP, 100)
    runs = [DROP[place:] for place in places]
    one, other = level_prior(DROP)
    beliefs = [stats.beta(one + run.sum(), other + len(run) - run.sum()) for run in runs]
    shares = np.array(list(places.values()))
    mean = shares @ [belief.mean() for belief in beliefs]
    variance = shares @ [belief.var() + (belief.mean() - mean) ** 2 for belief in beliefs]
    kept = remains(DROP, run_length=100).factors
    # A Beta of these has as many labels as its prior, twenty, and those kept.
    assert kept.sum() == pytest.approx(mean * (1 - mean) / variance - 21)
    plain = sum(share * run.mean() for share, run in zip(shares, runs, strict=True))
    assert kept @ DROP / kept.sum() == pytest.approx(plain)


@settings(deadline=None)
@given(group=OUTCOMES)
def test_something_is_kept_of_every_label_and_of_newer_ones_no_less(group: list[bool]) -> None:
    kept = remains(group, run_length=50).factors
    assert ((kept > 0) & (kept <= 1)).all()
    assert (np.diff(kept) >= -1e-12).all()


@settings(deadline=None)
@given(groups=st.lists(OUTCOMES, min_size=1, max_size=6), run_length=st.sampled_from([20, 1_000]))
def test_every_group_is_by_itself(groups: list[list[bool]], run_length: int) -> None:
    together = remains(*groups, run_length=run_length)
    alone = [remains(group, run_length=run_length) for group in groups]
    np.testing.assert_allclose(together.factors, np.concatenate([each.factors for each in alone]))
    np.testing.assert_allclose(together.changed, np.concatenate([each.changed for each in alone]))
    np.testing.assert_array_equal(together.before, np.concatenate([each.before for each in alone]))


@settings(deadline=None)
@given(group=OUTCOMES)
def test_right_and_wrong_count_alike(group: list[bool]) -> None:
    one, other = remains(group, run_length=50), remains([not said for said in group], run_length=50)
    np.testing.assert_allclose(one.factors, other.factors)


@settings(deadline=None)
@given(said=st.booleans(), count=st.integers(0, 400))
def test_labels_that_say_the_same_report_no_change_and_count_for_dozens(said: bool, count: int) -> None:
    found = remains([said] * count)
    assert found.before[0] == 0
    assert found.factors.sum() >= min(0.8 * count, 60)


@settings(deadline=None)
@given(group=st.lists(st.booleans(), max_size=2 * FEWEST - 1))
def test_so_few_labels_are_all_kept(group: list[bool]) -> None:
    assert (remains(group, run_length=2).factors == 1).all()


@pytest.mark.parametrize(("before", "after"), [(0.95, 0.6), (0.6, 0.95)])
def test_labels_before_a_plain_change_are_forgotten_and_those_since_are_kept(
    before: float, after: float
) -> None:
    found = remains(changed_at(400, before, after, then=200, seed=0))
    assert found.changed[0] > 0.99
    assert found.before[0] == pytest.approx(400, abs=20)
    assert found.factors[:350].max() < 0.01
    assert found.factors[440:].min() > 0.5


def test_of_several_changes_the_last_one_counts() -> None:
    labels = np.concatenate(
        (changed_at(300, 0.95, 0.6, then=150, seed=1), changed_at(0, 0.5, 0.95, then=150, seed=2))
    )
    assert remains(labels).before[0] == pytest.approx(450, abs=10)


def test_changes_that_would_be_probable_were_they_rarer_are_reported() -> None:
    found = remains(*(changed_at(100, 0.9, 0.75, then=40, seed=seed) for seed in range(200)))
    np.testing.assert_array_equal(found.before > 0, found.changed >= DETECTED)
    assert 0 < np.count_nonzero(found.changed >= DETECTED) < 200


def test_places_that_stand_for_several_labels_tell_the_same() -> None:
    labels = changed_at(500, 0.9, 0.75, then=200, seed=3)
    right = np.concatenate(([0], np.cumsum(labels)))
    # Every place by itself, oldest first: the same recursion without thinning, label by label.
    begun = np.full(len(labels) + 1, -np.inf)
    begun[0] = 0.0
    one, other = level_prior(labels)
    for end in range(1, len(labels) + 1):
        length, hits = end - np.arange(end), right[end] - right[:end]
        run = special.betaln(one + hits, other + length - hits) - special.betaln(one, other)
        estimated = begun[:end] + run + length * np.log1p(-1 / RUN_LENGTH)
        begun[end] = special.logsumexp(estimated) - np.log(RUN_LENGTH)
    exact = special.softmax(estimated[[*range(len(labels) - FEWEST + 1)]])
    found = remains(labels)
    expected = special.logit(1 - exact[0]) + if_rarer(len(labels), RUN_LENGTH)
    # The odds of a change agree within a few percent, which a place's width allows.
    assert special.logit(found.changed[0]) == pytest.approx(expected, abs=0.1)
    assert found.before[0] == pytest.approx(int(np.argmax(exact)), abs=8)


def test_no_groups_keep_nothing() -> None:
    found = change_point_weights(
        correct=np.zeros(0, np.bool_), sizes=np.zeros(0, np.intp), run_length=RUN_LENGTH
    )
    assert len(found.factors) == len(found.changed) == len(found.before) == 0


def test_changes_at_every_label_are_refused() -> None:
    with pytest.raises(ValueError, match="a run length of 1 leaves no label"):
        remains([True], run_length=1)
