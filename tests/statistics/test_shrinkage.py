"""How far a belief rests on a group's own labels: exact for a Beta, and shown beside what is believed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import snapshot

from service.serving.documents.groups import group_table
from service.statistics import beta as betas
from service.statistics.labels_needed import own_share

STRENGTHS = st.floats(0.5, 500)
RATES = st.floats(0.02, 0.98)


@given(strength=STRENGTHS, prior=RATES, labels=st.floats(0, 500), rate=RATES)
def test_of_a_beta_the_share_is_the_weight_of_the_own_rate_in_the_mean(
    strength: float, prior: float, labels: float, rate: float
) -> None:
    alpha = np.array([strength * prior + labels * rate])
    beta = np.array([strength * (1 - prior) + labels * (1 - rate)])
    mean, variance = betas.mean(alpha, beta), betas.variance(alpha, beta)
    share = own_share(labels=np.array([labels]), mean=mean, variance=variance)
    assert share == pytest.approx(labels / (labels + strength), abs=1e-6)
    assert mean == pytest.approx(share * rate + (1 - share) * prior, abs=1e-6)


def test_labels_that_say_more_than_the_belief_are_all_of_it() -> None:
    wide = own_share(labels=np.array([10.0]), mean=np.array([0.5]), variance=np.array([0.05]))
    assert wide == pytest.approx(1)


def test_a_group_without_labels_has_no_share() -> None:
    assert own_share(labels=np.zeros(1), mean=np.array([0.8]), variance=np.array([0.01])) == pytest.approx(0)


def test_more_labels_make_a_group_stand_on_its_own() -> None:
    # The labels of this model come class by class, which to its score bins is a change of accuracy.
    kept = {"after_change": False}
    few, many = (snapshot(count, forgetting=kept).groupings["class"].own_share for count in (10, 1_000))
    assert (few <= many).all()
    assert few.min() < 0.9 < many.min()
    assert (many > 0.8).all()


def test_the_document_of_a_group_shows_its_own_rate_and_share() -> None:
    taken = snapshot()
    grouping = taken.groupings["class"]
    for found in group_table(taken, "class").groups:
        at = grouping.groups.index(found.group)
        assert found.own_rate == pytest.approx(grouping.beliefs.correct[at] / grouping.beliefs.labels[at])
        assert found.own_share == grouping.own_share[at]


def test_the_document_of_a_group_without_labels_shows_that_it_has_no_rate() -> None:
    assert {group.own_rate for group in group_table(snapshot(0), "class").groups} == {None}
