"""Expected calibration error, overall and per group, with its uncertainty.

ECE_g = sum_b p_gb |theta_gb - s_gb| (Guo et al. 2017, as in Ji et al. 2021). Given the hyperparameters,
bins are independent, so its mean and variance are sums of closed forms; over hyperparameters the law of
total variance applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CalibrationError:
    """Beliefs about the ECE of every group, arrays [G]."""

    mean: Floats
    variance: Floats

    def interval(self, mass: float) -> tuple[Floats, Floats]:
        """Equal-tailed interval, of the Beta with this mean and variance."""
        return betas.interval(*betas.matching(self.mean, self.variance), mass)

    def probability_above(self, threshold: float) -> Floats:
        """P(ECE > threshold), of the Beta with this mean and variance."""
        alpha, beta = betas.matching(self.mean, self.variance)
        return np.asarray(special.betaincc(alpha, beta, threshold), np.float64)


def calibration_error(*, beliefs: BetaMixture, scores: Floats, shares: Floats) -> CalibrationError:
    """ECE of every group.

    Args:
        beliefs: about the accuracy of every (group, bin) [G * B], group by group.
        scores: mean score of every (group, bin) [G, B].
        shares: traffic of every bin within its group [G, B], rows summing to 1 (or 0: no traffic).
    """
    shape = (len(beliefs.weights), *scores.shape)
    distance, spread = betas.distance_moments(beliefs.alpha, beliefs.beta, scores.ravel())
    means = (shares * distance.reshape(shape)).sum(axis=2)
    variances = (shares**2 * spread.reshape(shape)).sum(axis=2)
    mean = beliefs.weights @ means
    between = beliefs.weights @ (means - mean) ** 2
    return CalibrationError(mean, beliefs.weights @ variances + between)
