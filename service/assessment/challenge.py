"""Whether a challenger is better than the champion, from the items on which the two disagree.

Both predict the same items, so one label tells of both. Where they agree they are right or wrong together,
and the difference of their accuracies has no part in it:

    difference = d (q - p),

with d the share of traffic on which they disagree, known from unlabelled traffic all but exactly; and on a
disagreement, q the probability that the challenger is right, p that the champion is, 1 - q - p that neither
is. So labels of disagreements alone tell who is better, and (q, p, 1 - q - p) is Dirichlet (the paired
comparison of McNemar, Psychometrika 1947, as a posterior). What is the same for either is the prior,
Jeffreys' for three outcomes.

Evidence that may be looked at any time: a label pays x = 1 where the challenger alone is right, -1 where the
champion alone is, 0 where neither is. While the challenger is better by t d at the most, E[x] <= t, and
betting a part of one's capital on x > t wins nothing on average (Waudby-Smith and Ramdas, JRSS B 2024,
section 4); the mean over several parts is such a bet too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas

Floats = npt.NDArray[np.float64]

_JEFFREYS: Final = 0.5
_OUTCOMES: Final = 3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_BETS: Final = np.arange(1, 33) / 33
"""Parts of the capital that may be lost at the most, each as likely."""


@dataclass(frozen=True)
class PairedLabels:
    """Labels of items on which champion and challenger disagree; arrays are [G].

    Attributes:
        challenger: effective number of those where the challenger is right.
        champion: of those where the champion is.
        neither: of those where neither is.
    """

    challenger: Floats
    champion: Floats
    neither: Floats

    @property
    def total(self) -> Floats:
        """All of them."""
        return self.challenger + self.champion + self.neither


@dataclass(frozen=True)
class ChallengeBeliefs:
    """What is believed of challenger less champion, in accuracy over all traffic of a group; arrays are [G].

    Attributes:
        disagreement: share of the traffic on which they disagree.
        labels: of disagreements.

    Raises:
        ValueError: a share is not in [0, 1], or a count is below 0.
    """

    disagreement: Floats
    labels: PairedLabels

    def __post_init__(self) -> None:
        if not np.all((self.disagreement >= 0) & (self.disagreement <= 1)):
            raise ValueError("a share of traffic lies in [0, 1]")
        counts = (self.labels.challenger, self.labels.champion, self.labels.neither)
        if not all(np.all(count >= 0) for count in counts):
            raise ValueError("labels are counted from 0 on")

    @property
    def mean(self) -> Floats:
        """Of the difference."""
        q, p, total = self._parameters()
        return self.disagreement * (q - p) / total

    @property
    def variance(self) -> Floats:
        """Of the difference."""
        q, p, total = self._parameters()
        squares: Floats = (q + p) / total - ((q - p) / total) ** 2
        return self.disagreement**2 * squares / (total + 1)

    def interval(self, mass: float) -> tuple[Floats, Floats]:
        """Equal-tailed interval of the difference: of the Beta on (-d, d) with its mean and variance.

        Args:
            mass: probability inside, strictly within 0 and 1.
        """
        d = np.where(self.disagreement > 0, self.disagreement, 1.0)
        alpha, beta = betas.matching((self.mean / d + 1) / 2, self.variance / (4 * d**2))
        lower, upper = betas.interval(alpha, beta, mass)
        return self.disagreement * (2 * lower - 1), self.disagreement * (2 * upper - 1)

    def better(self, margin: float) -> Floats:
        """P(the challenger is better by more than the margin)."""
        q, p, _ = self._parameters()
        return self._exceeds(q, p, margin)

    def worse(self, margin: float) -> Floats:
        """P(the challenger is worse by more than the margin)."""
        q, p, _ = self._parameters()
        return self._exceeds(p, q, margin)

    def log_e_better(self, margin: float) -> Floats:
        """Logarithm of the evidence that the challenger is better by more than the margin.

        Args:
            margin: difference of accuracies, 0 or more.
        """
        return self._log_capital(self.labels.challenger, self.labels.champion, margin)

    def log_e_worse(self, margin: float) -> Floats:
        """Logarithm of the evidence that the challenger is worse by more than the margin, likewise."""
        return self._log_capital(self.labels.champion, self.labels.challenger, margin)

    def _parameters(self) -> tuple[Floats, Floats, Floats]:
        q, p = self.labels.challenger + _JEFFREYS, self.labels.champion + _JEFFREYS
        return q, p, self.labels.total + _OUTCOMES * _JEFFREYS

    def _needed(self, margin: float) -> Floats:
        """By how much q must exceed p for that margin, 1 or more where it cannot."""
        if margin < 0:
            raise ValueError("a margin is 0 or more")
        none = np.ones(self.disagreement.shape)
        needed: Floats = np.divide(margin, self.disagreement, out=none, where=self.disagreement > margin)
        return needed

    def _exceeds(self, more: Floats, less: Floats, margin: float) -> Floats:
        """P(theta_more - theta_less > t): by quadrature over their sum, given which they divide it as a Beta.

        s = theta_more + theta_less ~ Beta(more + less, neither), u = theta_more / s ~ Beta(more, less).
        """
        needed = self._needed(margin)
        rest = self.labels.neither + _JEFFREYS
        # Quantiles of s stand for it: each as likely, so the integral is over (0, 1).
        levels = (_NODES + 1) / 2
        sums = special.betaincinv((more + less)[:, None], rest[:, None], levels)
        least = np.minimum((1 + needed[:, None] / np.maximum(sums, np.finfo(float).tiny)) / 2, 1.0)
        above = special.betaincc(more[:, None], less[:, None], least)
        probability: Floats = above @ (_WEIGHTS / 2)
        return np.where(needed < 1, probability, 0.0)

    def _log_capital(self, wins: Floats, losses: Floats, margin: float) -> Floats:
        needed = self._needed(margin)[:, None]
        bets = _BETS / (1 + needed)
        capital = (
            wins[:, None] * np.log1p(bets * (1 - needed))
            + losses[:, None] * np.log1p(-bets * (1 + needed))
            + self.labels.neither[:, None] * np.log1p(-bets * needed)
        )
        mixed: Floats = special.logsumexp(capital, axis=1) - np.log(len(_BETS))
        return mixed
