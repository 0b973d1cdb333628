"""What a label of every group is worth; for a binary classifier by score, as its performance tells (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from service.config.assessments import PerformanceSettings
from service.domain.arrays import Floats, Ints
from service.domain.cells import POSITIVE_SCORE
from service.domain.groupings import bin_names
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import sums
from service.statistics.binary.label_gains import PLANNING_SIGMAS, LabelledStrata, expected_gains
from service.statistics.binary.semi_supervised import ScoreLearner
from service.statistics.narrowing import LabelGains, diminished
from service.statistics.ratios import ratio

_DRAWS: Final = 400  # of the posterior that labels are chosen under


@dataclass(frozen=True)
class ScoreGains:
    """Worth of a label of every group, and labels, by the group's name."""

    gains: Mapping[str, float]
    labels: Mapping[str, float]
    answered: Mapping[str, int] = field(default_factory=dict)  # items with a label when this was learned

    def after(self, answered: Mapping[str, int]) -> ScoreGains:
        """The worth of a label by now, when so many items have one: less, where labels came since."""
        more = {group: max(answered.get(group, 0) - self.answered.get(group, 0), 0) for group in self.gains}
        return ScoreGains(
            {
                group: gain * float(diminished(np.array(self.labels[group]), more[group]))
                for group, gain in self.gains.items()
            },
            {group: labels + more[group] for group, labels in self.labels.items()},
            answered,
        )

    def of(self, groups: Sequence[str]) -> LabelGains:
        """As a policy reads it, of some groups [1, G]."""
        return LabelGains(
            np.array([[self.gains.get(group, 0.0) for group in groups]]),
            np.array([[self.labels.get(group, 0.0) for group in groups]]),
        )


def answered_by_score(index: GroupIndex, ledger: OutcomeLedger, *, now: float) -> dict[str, int]:
    """Items with a label, by group of the positive score."""
    groups, scored = index[POSITIVE_SCORE], ledger.scored_labels(at=now, decay=0.0)
    counts = np.bincount(groups.numbers[scored.cells], minlength=len(groups.names) + 1)
    return dict(zip(groups.names, counts.tolist()[:-1], strict=True))


def score_gains(
    learner: ScoreLearner,
    labels: Sequence[tuple[Floats, Floats]],
    score_edges: Sequence[float],
    settings: PerformanceSettings,
    rng: np.random.Generator,
) -> ScoreGains:
    """What labels are worth, by what is learned from positive and negative labels of every bin.

    There are several of these if labels may be wrong, each as probable.
    """
    bins = learner.bins
    names = bin_names(score_edges)
    of: Ints = np.searchsorted(score_edges, bins.scores, side="right")

    def by_group(values: Floats) -> Floats:
        return sums(of, values, len(names))

    planner = replace(learner, sigmas=PLANNING_SIGMAS)
    counts = by_group(bins.counts)
    theta = []
    for positives, negatives in labels:
        learned = planner.learn(positives, negatives, rng, draws=-(-_DRAWS // len(labels)))
        theta += [ratio(by_group(bins.counts * draw), counts, 0.5) for draw in learned.probabilities]
    positives, negatives = (by_group(np.mean(each, axis=0)) for each in zip(*labels, strict=True))
    strata = LabelledStrata(
        called=ratio(by_group(bins.counts * (bins.lower_ends >= settings.threshold)), counts, 0.0),
        counts=np.maximum(counts, positives + negatives + 1),
        positives=positives,
        negatives=negatives,
    )
    gains = np.where(counts > 0, expected_gains(strata, np.array(theta), settings.aim), 0.0)
    return ScoreGains(
        dict(zip(names, gains.tolist(), strict=True)),
        dict(zip(names, (positives + negatives).tolist(), strict=True)),
    )
