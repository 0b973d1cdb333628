"""Priors of groupwise accuracy: fixed ones, and the learned one.

The learned prior lets the labels say how far the model's scores are off and how much groups differ:

    m_g = expit(c + a + b (logit s_g - c)),  theta_g ~ Beta(N0 m_g, N0 (1 - m_g)),

with c the mean of logit s over the groups, and offset a, slope b and strength N0 integrated out on a
grid by their beta-binomial marginal likelihood. Fixed priors are those of Ji, Logan, Smyth, Steyvers
(AAAI 2021), and with a Jeffreys floor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment import beta as betas
from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]
PriorName = Literal["learned", "informed", "informed_jeffreys", "uniform"]

_SCORE_MARGIN = 1e-3
"""Mean scores are kept this far from 0 and 1, where Beta(N0 s, N0 (1 - s)) would not exist."""

_PLAUSIBLE = 1e-4
"""Hyperparameters less plausible than this, relative to the best, are left out of the mixture."""

_UNLIKE_STRENGTH = 2.0
"""Pseudo-labels of the prior of a group that is unlike the others."""


class Prior(Protocol):
    """What is believed before labels, turned into what is believed after them."""

    def posterior(self, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
        """Beliefs about every group.

        Args:
            scores: mean score of every group [G], from traffic alone.
            labels: effective number of labels of every group [G].
            correct: effective number of correct ones [G], at most `labels`.
        """


@dataclass(frozen=True)
class FixedPrior:
    """Beta(strength * s + floor, strength * (1 - s) + floor), with s = 1/2 if not informed.

    Attributes:
        strength: pseudo-labels N0 of the prior.
        informed: whether s is the group's mean score.
        floor: added to both parameters; 1/2 keeps the interval wide where scores are near 1.
    """

    strength: float = 2.0
    informed: bool = True
    floor: float = 0.0

    def posterior(self, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
        """Beliefs about every group; one component."""
        centre = inside(scores) if self.informed else np.full(len(scores), 0.5)
        alpha = self.strength * centre + self.floor + correct
        beta = self.strength * (1 - centre) + self.floor + labels - correct
        return BetaMixture(np.ones(1), alpha[None, :], beta[None, :])


@dataclass(frozen=True)
class LearnedPrior:
    """Offset, slope and strength integrated out on a grid.

    Some group may be unlike the others, as when one camera breaks; so with the probability `unlike`
    a group's own prior is Beta(2 m_g, 2 (1 - m_g)), and soon its labels alone speak for it. Which of the
    two it is, is integrated out too, and the sum of two Betas kept as the one of equal mean and variance.

    Attributes:
        offsets: grid of a; prior Normal(0, 1.5).
        slopes: grid of b; prior Normal(1, 0.3).
        strengths: grid of N0; prior log-uniform, so a geometric grid weighs evenly.
        unlike: probability that a group is unlike the others.
        components: most components that the mixture keeps.
    """

    offsets: Floats = field(default_factory=lambda: np.linspace(-4.5, 4.5, 25))
    slopes: Floats = field(default_factory=lambda: np.linspace(0.25, 1.75, 5))
    strengths: Floats = field(default_factory=lambda: np.geomspace(1.0, 1000.0, 10))
    unlike: float = 0.03
    components: int = 128

    def posterior(self, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
        """Beliefs about every group; one component for every plausible choice of hyperparameters."""
        logits = special.logit(inside(scores))
        middle = logits.mean()
        centres = special.expit(
            middle + self.offsets[:, None, None] + self.slopes[None, :, None] * (logits - middle)
        )
        wrong = np.maximum(labels - correct, 0.0)
        log_weights = self._log_weights(centres, labels, correct, wrong)
        (offset, slope, strength), weights = self._plausible(special.softmax(log_weights))
        centre, size = centres[offset, slope], self.strengths[strength, None]
        common = size * centre, size * (1 - centre)
        own = _UNLIKE_STRENGTH * centre, _UNLIKE_STRENGTH * (1 - centre)
        odds = log_likelihood(*own, correct, wrong) - log_likelihood(*common, correct, wrong)
        is_unlike = special.expit(special.logit(self.unlike) + odds)
        alpha, beta = betas.merged(
            is_unlike, (own[0] + correct, own[1] + wrong), (common[0] + correct, common[1] + wrong)
        )
        return BetaMixture(weights, alpha, beta)

    def _log_weights(self, centres: Floats, labels: Floats, correct: Floats, wrong: Floats) -> Floats:
        """Log posterior, but for a constant, of every grid point [offsets, slopes, strengths]."""
        prior = normal_log(self.offsets, 0.0, 1.5)[:, None] + normal_log(self.slopes, 1.0, 0.3)[None, :]
        log_weights = np.repeat(prior[:, :, None], len(self.strengths), axis=2)
        seen = labels > 0
        centres, correct, wrong = centres[:, :, seen], correct[seen], wrong[seen]
        own = _UNLIKE_STRENGTH * centres, _UNLIKE_STRENGTH * (1 - centres)
        as_unlike = np.log(self.unlike) + log_likelihood(*own, correct, wrong)
        for k, strength in enumerate(self.strengths):
            as_others = log_likelihood(strength * centres, strength * (1 - centres), correct, wrong)
            either = np.logaddexp(np.log1p(-self.unlike) + as_others, as_unlike)
            log_weights[:, :, k] += either.sum(axis=2)
        return log_weights

    def _plausible(self, weights: Floats) -> tuple[tuple[npt.NDArray[np.intp], ...], Floats]:
        """Grid points that stand for all, and their weights: the plausible, or an even sample of them."""
        flat = weights.ravel()
        kept = np.flatnonzero(flat > _PLAUSIBLE * flat.max())
        shares = flat[kept] / flat[kept].sum()
        if len(kept) > self.components:
            # Neighbours on the grid are alike, so equal steps of cumulative weight miss no part of it.
            steps = (np.arange(self.components) + 0.5) / self.components
            counts = np.bincount(np.searchsorted(np.cumsum(shares), steps), minlength=len(kept))
            kept, shares = kept[counts > 0], counts[counts > 0] / self.components
        return np.unravel_index(kept, weights.shape), shares


def normal_log(points: Floats, centre: float, deviation: float) -> Floats:
    """Log density of a normal distribution, but for a constant."""
    density: Floats = -0.5 * ((points - centre) / deviation) ** 2
    return density


def log_likelihood(alpha: Floats, beta: Floats, correct: Floats, wrong: Floats) -> Floats:
    """Log marginal likelihood of effective counts under Beta(alpha, beta), without the binomial coefficient.

    The same as betaln(alpha + correct, beta + wrong) - betaln(alpha, beta), and seven times faster.
    """
    gammaln = special.gammaln
    likelihood: Floats = gammaln(alpha + correct) - gammaln(alpha)
    likelihood += gammaln(beta + wrong) - gammaln(beta)
    likelihood -= gammaln(alpha + beta + correct + wrong) - gammaln(alpha + beta)
    return likelihood


def inside(scores: Floats) -> Floats:
    """Scores kept within (0, 1)."""
    return np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)


def group_prior(name: PriorName) -> Prior:
    """The prior of groupwise accuracy with this name in the configuration."""
    priors: dict[PriorName, Prior] = {
        "learned": LearnedPrior(),
        "informed": FixedPrior(),
        "informed_jeffreys": FixedPrior(floor=0.5),
        "uniform": FixedPrior(informed=False),
    }
    return priors[name]
