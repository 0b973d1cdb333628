"""The design-based check of a binary classifier's performance at its threshold (pure).

Labels of one score bin are of random items of it, and traffic says how many items every bin has. So each
label's inclusion probability is known, and labels alone estimate the performance, whatever scores mean. This
estimate is what counts if labels contradict the score model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.config.assessments import PerformanceSettings
from service.domain.arrays import Floats, Ints
from service.monitoring.performance_facts import PerformanceFacts
from service.statistics.balance_heuristic import sums
from service.statistics.binary.design import design_estimate
from service.statistics.binary.label_gains import LabelledStrata
from service.statistics.binary.performance import Performance, Target
from service.statistics.binary.score_bins import ScoreBins
from service.statistics.binary.score_steps import LOG_CONTRADICTED, log_evidence_of_steps
from service.statistics.estimate import MedianEstimate

_MEASURES = ("precision", "recall", "f1", "false_positive_rate")

_DRAWS = 1_000  # of the shares of items that may have any class


def at_every_threshold(drawn: Performance, interval: float) -> dict[str, MedianEstimate]:
    """Medians and intervals [T] of the measures that depend on the threshold, by name."""
    return {name: MedianEstimate.of(getattr(drawn, name), interval) for name in _MEASURES}


@dataclass(frozen=True)
class AtThreshold:
    """Estimates at the model's threshold.

    They are posterior medians: where positive items are rare, posteriors are skewed by the items that may be
    missed, and their means are far from most of the mass. The curve is of medians, too.
    """

    # precision, recall, f1 and false positive rate, and the prevalence of the positive class, by name
    measures: Mapping[str, MedianEstimate]
    # probability that a target is missed, given that the measure exists, by measure; nothing of one that does
    # not exist, like the precision where nothing is called positive
    missed: Mapping[str, float]

    @classmethod
    def of(
        cls,
        drawn: Performance,
        every: Mapping[str, MedianEstimate],
        at: int,
        targets: Mapping[str, float],
        interval: float,
    ) -> AtThreshold:
        """From draws, and the estimates at every threshold, at the position of one."""
        exists = {name: np.isfinite(getattr(drawn, name)[:, at]) for name in targets}
        return cls(
            measures={
                **{name: estimate.part(np.array(at)) for name, estimate in every.items()},
                "prevalence": MedianEstimate.of(drawn.prevalence, interval),
            },
            missed={
                name: float(1 - Target(**{name: least}).met(drawn)[exists[name], at].mean())
                for name, least in targets.items()
                if exists[name].any()
            },
        )

    def among(self, every: Mapping[str, MedianEstimate], at: int) -> dict[str, MedianEstimate]:
        """Estimates at every threshold, by measure, with these at one position."""

        def replaced(estimate: MedianEstimate, own: MedianEstimate) -> MedianEstimate:
            here = np.arange(len(estimate.median)) == at
            return MedianEstimate(
                np.where(here, own.lower, estimate.lower),
                np.where(here, own.median, estimate.median),
                np.where(here, own.upper, estimate.upper),
            )

        return {name: replaced(estimate, self.measures[name]) for name, estimate in every.items()}


@dataclass(frozen=True)
class DesignCheck:
    """What labels alone say, and how much they contradict the score model."""

    estimate: AtThreshold
    log_factor: float  # log Bayes factor of a positive share with steps against the score model

    @property
    def log10_factor(self) -> float:
        """Log10 of the Bayes factor."""
        return self.log_factor / float(np.log(10))

    @property
    def disagrees(self) -> bool:
        """Whether labels contradict the score model, so that the design-based estimate counts."""
        return self.log_factor >= LOG_CONTRADICTED


def check_against_design(
    facts: PerformanceFacts,
    settings: PerformanceSettings,
    bins: ScoreBins,
    labels: Sequence[tuple[Floats, Floats]],
    *,
    log_evidence: float,
    interval: float,
    rng: np.random.Generator,
) -> DesignCheck:
    """The check, given positive and negative labels of every bin of scores, once for every imputation.

    `log_evidence` is the log probability of the labels in the score model, on average over imputations.
    """
    threshold = settings.threshold
    edges = np.unique([*facts.score_edges, threshold])
    of: Ints = np.searchsorted(edges, bins.lower_ends, side="right")
    counts, ends = sums(of, bins.counts, len(edges) + 1), np.append(0.0, edges)
    empty = LabelledStrata((ends >= threshold).astype(np.float64), counts, 0 * counts, 0 * counts)
    samples = [
        replace(empty, positives=sums(of, each[0], len(counts)), negatives=sums(of, each[1], len(counts)))
        for each in labels
    ]
    unclear = None
    if facts.unclear is not None:
        unclear = facts.unclear.shares(ends, _DRAWS, rng)
    drawn = design_estimate(samples, rng, unclear).performance(threshold, rng)
    steps = np.mean([log_evidence_of_steps(each.positives, each.negatives) for each in samples])
    return DesignCheck(
        estimate=AtThreshold.of(
            drawn, at_every_threshold(drawn, interval), 0, settings.targets.wanted, interval
        ),
        log_factor=float(steps) - log_evidence,
    )
