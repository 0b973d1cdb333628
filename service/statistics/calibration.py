"""Expected calibration error (ECE) per group, with its uncertainty.

ECE_g = sum_b p_gb |theta_gb - s_gb| (Guo et al. 2017, as in Ji et al. 2021). Given the hyperparameters, bins
are independent, so its mean and variance are sums of closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.mixture import BetaMixture


@dataclass(frozen=True)
class CalibrationError:
    """Posterior of the ECE of every group; arrays are [G]."""

    beliefs: BetaMixture  # of the ECE; every component is the Beta with its mean and variance
    proven_mean: Floats  # of sum_b p_gb sign_gb (theta_gb - s_gb), the sign being that of the mean difference
    proven_deviation: Floats  # standard deviation of the same

    @property
    def mean(self) -> Floats:
        """Posterior mean."""
        return self.beliefs.mean()

    def interval(self, mass: float) -> tuple[Floats, Floats]:
        """Interval with probability `mass` or more.

        A sum of absolute values never has posterior mass near 0: every bin with some uncertainty adds to it,
        so an equal-tailed interval would not cover an ECE of 0. So the lower end is that of the signed sum,
        which the ECE is never less than; it is 0 until labels show a miscalibration.
        """
        tail = (1 - mass) / 2
        lower = self.proven_mean + special.ndtri(tail) * self.proven_deviation
        return np.maximum(lower, 0.0), self.beliefs.quantile(1 - tail)

    def probability_above(self, threshold: float | Floats) -> Floats:
        """P(ECE > threshold); one threshold, or one per group [G]."""
        return 1 - self.beliefs.probability_below(threshold)


@dataclass(frozen=True)
class PossibleCalibrationError(CalibrationError):
    """The same where labels are missing: of the labels that there are, and of what `others` add to them.

    What is missing may make the ECE larger or smaller, and not evenly so: it may be 0 between two extremes
    that are not. So it counts as above a threshold only if it is in all cases.
    """

    others: tuple[CalibrationError, ...] = ()

    def interval(self, mass: float) -> tuple[Floats, Floats]:
        """Interval that contains those of all cases."""
        lowers, uppers = zip(
            super().interval(mass), *(each.interval(mass) for each in self.others), strict=True
        )
        return np.min(lowers, axis=0), np.max(uppers, axis=0)

    def probability_above(self, threshold: float | Floats) -> Floats:
        """P(ECE > threshold), in the case where it is lowest."""
        cases = [super().probability_above(threshold)]
        cases += [each.probability_above(threshold) for each in self.others]
        return np.asarray(np.min(cases, axis=0), np.float64)


def calibration_error(*, beliefs: BetaMixture, scores: Floats, shares: Floats) -> CalibrationError:
    """ECE of every group, from the posterior of every (group, bin) [G * B], group by group.

    Scores are means of every (group, bin) [G, B], shares the traffic of every bin within its group [G, B],
    rows summing to 1 (or 0: no traffic).
    """
    shape = (len(beliefs.weights), *scores.shape)
    used = (shares > 0).ravel()
    distances, spreads, gaps, variances = (np.zeros((shape[0], shares.size)) for _ in range(4))
    alpha, beta, score = beliefs.alpha[:, used], beliefs.beta[:, used], scores.ravel()[used]
    distances[:, used], spreads[:, used] = betas.distance_moments(alpha, beta, score)
    gaps[:, used], variances[:, used] = betas.mean(alpha, beta) - score, betas.variance(alpha, beta)
    signs = np.sign(beliefs.weights @ gaps).reshape(scores.shape)
    means = (shares * distances.reshape(shape)).sum(axis=2)
    signed = (shares * signs * gaps.reshape(shape)).sum(axis=2)
    proven = beliefs.weights @ signed
    within = beliefs.weights @ (shares**2 * variances.reshape(shape)).sum(axis=2)
    return CalibrationError(
        beliefs=BetaMixture(
            beliefs.weights, *betas.matching(means, (shares**2 * spreads.reshape(shape)).sum(axis=2))
        ),
        proven_mean=proven,
        proven_deviation=np.sqrt(within + beliefs.weights @ (signed - proven) ** 2),
    )
