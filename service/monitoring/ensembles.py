"""Precision of an ensemble and its members, and the labels that they still need (pure).

Items are distinguished by their vote patterns, so that one label serves every member that calls the item
positive (`service/statistics/vote_patterns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.config.assessments import EnsembleSettings
from service.domain.arrays import Floats, Indices
from service.domain.cells import VOTES
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.imputed_labels import answered
from service.monitoring.outcome_aggregates import NO_CLASS
from service.statistics.balance_heuristic import effective_counts
from service.statistics.groups import Labels
from service.statistics.ratios import ratio
from service.statistics.vote_patterns import (
    Allocation,
    MemberBeliefs,
    VotePatterns,
    allocate,
    member_beliefs,
    mixed_members,
)

ITSELF = "ensemble"  # name of the ensemble's own decision among its members


@dataclass(frozen=True)
class EnsembleSnapshot:
    """Estimates of an ensemble and its members; arrays are [members], the ensemble itself first."""

    members: tuple[str, ...]
    positive_class: str  # which items they call positive
    shares: Floats  # of the traffic that each calls positive
    beliefs: MemberBeliefs  # about the precision of each, and as how many labels that counts
    labels: Floats  # known ones among the items that each calls positive
    # probability that each misses the target of precision, NaN of one without a label; None where there is
    # no target
    missed: Floats | None
    target: float | None  # of precision
    plan: Indices  # labels still to be asked for, by vote pattern
    groups: list[str]  # the vote patterns, by the names of their groups [P]
    wanted: int  # labels that each member is to have
    asked: float  # labels that serve the ensemble and its members, in all
    alone: float  # labels that as many for each member would have cost, had none been shared

    @property
    def saving(self) -> float:
        """Share of the labels that was saved so far by sharing them; 0 before the first one."""
        return 1 - self.asked / self.alone if self.alone > 0 else 0.0


def ensemble_snapshot(
    settings: EnsembleSettings,
    index: GroupIndex,
    compared: Sequence[Labels],
    *,
    in_flight: Mapping[str, float],
    rng: np.random.Generator,
    interval: float,
) -> EnsembleSnapshot | None:
    """Estimates of an ensemble; None while no prediction carried the votes of all members.

    Labels are `compared` as `WeightedLabels` has them. Of every group, `in_flight` requests wait for an
    answer; `rng` draws among vote patterns that are too rare for a label each.
    """
    ensemble = index.space.ensemble
    if ensemble is None:
        return None
    every = index[VOTES]
    names, weights = every.names, every.weights.sum(axis=1)
    size = 1 + len(ensemble.members)
    voted = [len(name) == size and set(name) <= {"0", "1"} for name in names]
    # Before the first prediction there is no group, and the array has no type.
    usable = np.array(voted, np.bool_) & (weights > 0)
    if not usable.any():
        return None
    groups = [name for name, use in zip(names, usable, strict=True) if use]
    masks = np.array(
        [sum(1 << m for m, digit in enumerate(name) if digit == "1") for name in groups], np.int64
    )
    allocation = allocate(VotePatterns(masks, weights[usable], size), settings.member_labels)
    number = index.space.classes.index(ensemble.positive)
    known = _known(answered(compared[0]), every, number)[0][usable]
    waiting = np.array([in_flight.get(name, 0.0) for name in groups])
    counts = [_known(each, every, number, all_open=bool(n % 2)) for n, each in enumerate(compared)]
    labels, positive = (np.stack(each)[:, usable] for each in zip(*counts, strict=True))
    posteriors = member_beliefs(allocation, labels, np.minimum(positive, labels), mass=interval)
    beliefs = mixed_members(posteriors, mass=interval) if len(compared) > 1 else _only(posteriors)
    called = allocation.patterns.called()
    target = settings.targets.precision
    return EnsembleSnapshot(
        members=(ITSELF, *ensemble.members),
        positive_class=ensemble.positive,
        shares=allocation.patterns.sizes() / max(float(weights.sum()), np.finfo(float).tiny),
        beliefs=beliefs,
        labels=called @ known,
        missed=None if target is None else _below(posteriors, called @ known, target),
        target=target,
        plan=allocation.plan(known + waiting, rng),
        groups=groups,
        wanted=settings.member_labels,
        asked=float(known[called.any(axis=0)].sum()),
        alone=_alone(allocation, known),
    )


def _known(labels: Labels, groups: Groups, positive: int, *, all_open: bool = False) -> tuple[Floats, Floats]:
    """Effective labels of every group, and those that say positive [G].

    Whether items that may have any true class are positive is `all_open`.
    """
    labels = groups.labels_of(labels)
    is_positive = labels.true_classes == positive
    if all_open:
        is_positive |= labels.true_classes < NO_CLASS
    return effective_counts(
        groups=groups.cells[labels.cells],
        group_count=len(groups.names),
        weights=labels.weights,
        freshness=labels.freshness,
        correct=is_positive.astype(np.float64),
    )


def _only(beliefs: MemberBeliefs) -> MemberBeliefs:
    """The posterior given the only imputation [members]."""
    return MemberBeliefs(*(values[0] for values in vars(beliefs).values()))


def _below(beliefs: MemberBeliefs, labels: Floats, target: float) -> Floats:
    """P(precision < target) of every member, given all imputations [members]; NaN of one without a label."""
    probability = special.betainc(beliefs.alpha, beliefs.beta, target).mean(axis=0)
    return np.where(labels > 0, probability, np.nan)


def _alone(allocation: Allocation, known: Floats) -> float:
    """Labels that members would have cost one by one, to have what they have now."""
    patterns = allocation.patterns
    needed = np.where(patterns.called(), allocation.needed, 0.0)
    have = np.minimum(known, allocation.needed)
    enough = ratio(have, allocation.needed, 0.0)
    shares = patterns.within()
    # Each member's sample goes as far as the labels of its patterns do, and no further than is wanted.
    reached: Floats = (shares * enough).sum(axis=1) * allocation.wanted
    extra = float((known - have)[needed.any(axis=0)].sum())
    return float(reached.sum()) + extra
