"""Whether a challenger is better than the champion, from the items on which the two disagree.

Both predict the same items, so one label informs about both. Where they agree they are right or wrong
together, and cancel in the difference of their accuracies:

    difference = d (q - p),

with d the share of traffic on which they disagree, known almost exactly from unlabelled traffic; and on a
disagreement, q the probability that the challenger is right, p that the champion is, 1 - q - p that neither
is. So only labels of disagreements matter, and (q, p, 1 - q - p) is Dirichlet (the paired comparison of
McNemar, Psychometrika 1947, as a posterior). The prior is symmetric in both: Jeffreys' for three outcomes.

Anytime-valid evidence: a label pays x = 1 where the challenger alone is right, -1 where the champion alone
is, 0 where neither is. If the challenger is better by t d at most, E[x] <= t, and betting a part of the
capital on x > t does not gain on average (Waudby-Smith and Ramdas, JRSS B 2024, section 4); the mean over
several parts is such a bet too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import beta as betas
from service.statistics.estimate import Estimate
from service.statistics.mixture import BetaMixture

_JEFFREYS: Final = 0.5
_OUTCOMES: Final = 3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_REACH: Final = 6.0  # standard deviations around the mean that are integrated over; less than 1e-8 is beyond
_BETS: Final = np.arange(1, 33) / 33  # largest parts of the capital that a bet may lose, equally weighted


@dataclass(frozen=True)
class PairedLabels:
    """Effective numbers of labels of items on which champion and challenger disagree [G], by who is right."""

    challenger: Floats
    champion: Floats
    neither: Floats

    @property
    def total(self) -> Floats:
        """All labels of disagreements."""
        return self.challenger + self.champion + self.neither


@dataclass(frozen=True)
class ChallengeBeliefs:
    """Posterior of the accuracy of challenger minus champion over all traffic of a group; arrays are [G]."""

    disagreement: Floats  # share of the traffic on which they disagree
    labels: PairedLabels

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
        """Equal-tailed interval with probability `mass` under the Beta on (-d, d) of these moments."""
        lower, upper = betas.interval(*self.matching_beta(), mass)
        return self.disagreement * (2 * lower - 1), self.disagreement * (2 * upper - 1)

    def matching_beta(self) -> tuple[Floats, Floats]:
        """Parameters of that Beta, if it were on (0, 1)."""
        d = np.where(self.disagreement > 0, self.disagreement, 1.0)
        return betas.matching((self.mean / d + 1) / 2, self.variance / (4 * d**2))

    def better(self, margin: float) -> Floats:
        """P(the challenger is better by more than the margin)."""
        q, p, _ = self._parameters()
        return self._exceeds(q, p, margin)

    def worse(self, margin: float) -> Floats:
        """P(the challenger is worse by more than the margin)."""
        q, p, _ = self._parameters()
        return self._exceeds(p, q, margin)

    def log_e_better(self, margin: float, *, wrong_labels: float = 0.0) -> Floats:
        """Log e-value that the challenger is better by more than the margin, a difference of 0 or more.

        At most the share `wrong_labels` of the labels of disagreements is wrong.
        """
        return self._log_capital(self.labels.challenger, self.labels.champion, margin, wrong_labels)

    def log_e_worse(self, margin: float, *, wrong_labels: float = 0.0) -> Floats:
        """Log e-value that the challenger is worse by more than the margin, likewise."""
        return self._log_capital(self.labels.champion, self.labels.challenger, margin, wrong_labels)

    def _parameters(self) -> tuple[Floats, Floats, Floats]:
        q, p = self.labels.challenger + _JEFFREYS, self.labels.champion + _JEFFREYS
        return q, p, self.labels.total + _OUTCOMES * _JEFFREYS

    def _needed(self, margin: float) -> Floats:
        """By how much q must exceed p for that margin; 1 or more where it cannot."""
        none = np.ones(self.disagreement.shape)
        return np.divide(margin, self.disagreement, out=none, where=self.disagreement > margin)

    def _exceeds(self, more: Floats, less: Floats, margin: float) -> Floats:
        """P(theta_more - theta_less > t): by quadrature over their sum, which they divide as a Beta.

        s = theta_more + theta_less ~ Beta(more + less, neither) must exceed t, and theta_more / s ~
        Beta(more, less) must then exceed (1 + t / s) / 2. With s = sin^2 x the density of x is 2 sin^(2a-1) x
        cos^(2b-1) x / B(a, b), which is smooth as a and b are at least 1/2.
        """
        needed = self._needed(margin)
        possible = np.minimum(needed, 1.0)
        a, b = more + less, self.labels.neither + _JEFFREYS
        centre, reach = np.arcsin(np.sqrt(a / (a + b))), _REACH / (2 * np.sqrt(a + b))
        begin = np.maximum(np.arcsin(np.sqrt(possible)), centre - reach)
        half = np.maximum(np.minimum(np.pi / 2, centre + reach) - begin, 0.0) / 2
        x = (begin + half)[:, None] + half[:, None] * _NODES
        sums = np.sin(x) ** 2
        density = special.xlogy((2 * a - 1)[:, None], np.sin(x))
        density += special.xlogy((2 * b - 1)[:, None], np.cos(x)) - special.betaln(a, b)[:, None]
        least = np.clip((1 + possible[:, None] / np.maximum(sums, np.finfo(float).tiny)) / 2, 0.0, 1.0)
        above = special.betaincc(more[:, None], less[:, None], least)
        probability: Floats = 2 * half * ((np.exp(density) * above) @ _WEIGHTS)
        return np.clip(probability, 0.0, 1.0)

    def _log_capital(self, wins: Floats, losses: Floats, margin: float, wrong_labels: float) -> Floats:
        # A wrong label changes x by 2 at most.
        needed = self._needed(margin)[:, None] + 2 * wrong_labels
        bets = _BETS / (1 + needed)
        capital = (
            wins[:, None] * np.log1p(bets * (1 - needed))
            + losses[:, None] * np.log1p(-bets * (1 + needed))
            + self.labels.neither[:, None] * np.log1p(-bets * needed)
        )
        mixed: Floats = special.logsumexp(capital, axis=1) - np.log(len(_BETS))
        return mixed


def mixed_difference(imputed: Sequence[ChallengeBeliefs], mass: float) -> Estimate:
    """Mean and interval of the difference [G], given several imputations of what labels leave open.

    The posterior is the mixture of those given one imputation each, all equally probable (Rubin, 1987).
    """
    first = imputed[0]
    if len(imputed) == 1:
        lower, upper = first.interval(mass)
        return Estimate(lower, first.mean, upper)
    alpha, beta = (np.stack(each) for each in zip(*(one.matching_beta() for one in imputed), strict=True))
    mixture = BetaMixture(np.full(len(imputed), 1 / len(imputed)), alpha, beta)
    lower, upper = mixture.interval(mass)
    return Estimate(*(first.disagreement * (2 * each - 1) for each in (lower, mixture.mean(), upper)))
