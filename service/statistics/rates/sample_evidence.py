"""Anytime-valid evidence on a rate of groups from labels of random items of each, whatever their order.

This is the evidence of `RateEvidence` without strata: each label is a random item of its group, so with the
indicators N of the numerator and D of the denominator, "the rate is at most L" says E[N - L D] <= 0, and the
product of 1 + b (N - L D) over all labels is an e-process for every b that cannot ruin. It depends on nothing
but how many labels there are of each kind. Which group is labelled next may be chosen in any way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats
from service.statistics.rates.evidence import BETS, LEAST_BOUND, LIMITS, LimitEvidence, log_mean
from service.statistics.rates.measures import Rate


@dataclass(frozen=True)
class SampleEvidence(LimitEvidence):
    """Log e-values of one rate of G groups; R is 1."""

    rate: Rate
    limits: Floats
    log_e_above: Floats
    log_e_below: Floats

    @classmethod
    def of(cls, rate: Rate, labels: Floats, unlabelled: Floats, limits: Floats = LIMITS) -> SampleEvidence:
        """From numbers of labels by whether items are positive, and selected [G, 2, 2].

        Items without a label may have any true class, `unlabelled` by whether they are selected [G, 2]. They
        count as what says the least.
        """
        gains = rate.numerator - limits[:, None, None] * rate.denominator  # [T, 2, 2]
        return cls(rate, limits, _log_e(gains, labels, unlabelled), _log_e(-gains, labels, unlabelled))

    def of_groups(self, groups: Flags) -> SampleEvidence:
        """Of some groups [G]."""
        return SampleEvidence(
            self.rate, self.limits, self.log_e_above[:, groups], self.log_e_below[:, groups]
        )


def _log_e(gains: Floats, labels: Floats, unlabelled: Floats) -> Floats:
    """Log e-values against "the gain of a label is at most 0 on average" [1, G, T], of gains [T, 2, 2]."""
    worst = -gains.min(axis=(1, 2))
    # Where nothing can be lost the rate cannot be at the limit, and no bet is needed.
    parts = np.where(worst > LEAST_BOUND, BETS[:, None] / np.maximum(worst, LEAST_BOUND), 0.0)  # [B, T]
    logs = np.log1p(parts[:, :, None, None] * gains)  # [B, T, 2, 2]
    capital = np.tensordot(labels, logs, axes=((1, 2), (2, 3)))  # [G, B, T]
    capital = capital + np.tensordot(unlabelled, logs.min(axis=2), axes=((1,), (2,)))
    return log_mean(np.moveaxis(capital, 1, 2))[None]
