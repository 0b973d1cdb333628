"""Priors of groupwise accuracy: fixed ones, and the learned one.

The learned prior lets the labels say how far the model's scores are off and how much groups differ:

    m_g = expit(a + b logit s_g),  theta_g ~ Beta(N0 m_g, N0 (1 - m_g)),

with offset a, slope b and strength N0 integrated out on a grid by their beta-binomial marginal
likelihood. Fixed priors are those of Ji, Logan, Smyth, Steyvers (AAAI 2021), and with a Jeffreys floor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.mixture import BetaMixture

Floats = npt.NDArray[np.float64]
PriorName = Literal["learned", "informed", "informed_jeffreys", "uniform"]

_SCORE_MARGIN = 1e-3
"""Mean scores are kept this far from 0 and 1, where Beta(N0 s, N0 (1 - s)) would not exist."""

_PLAUSIBLE = 1e-4
"""Hyperparameters less plausible than this, relative to the best, are left out of the mixture."""


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


def _normal_log_weights(points: Floats, centre: float, scale: float) -> Floats:
    weights: Floats = -0.5 * ((points - centre) / scale) ** 2
    return weights


@dataclass(frozen=True)
class LearnedPrior:
    """Offset, slope and strength integrated out on a grid.

    Attributes:
        offsets: grid of a; prior Normal(0, 1.5).
        slopes: grid of b; prior Normal(1, 0.5). A single 1 for groupwise accuracy.
        strengths: grid of N0; prior log-uniform, so a geometric grid weighs evenly.
        components: most components that the mixture keeps.
    """

    offsets: Floats = field(default_factory=lambda: np.linspace(-4.5, 4.5, 33))
    slopes: Floats = field(default_factory=lambda: np.ones(1))
    strengths: Floats = field(default_factory=lambda: np.geomspace(1.0, 1000.0, 12))
    components: int = 128

    def posterior(self, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
        """Beliefs about every group; one component for every plausible choice of hyperparameters."""
        centres = special.expit(
            self.offsets[:, None, None] + self.slopes[None, :, None] * special.logit(inside(scores))
        )
        log_weights = self._log_prior() + self._log_likelihood(centres, labels, correct)
        offset, slope, strength = self._plausible(log_weights)
        chosen = log_weights[offset, slope, strength]
        weights = special.softmax(chosen)
        centre, size = centres[offset, slope], self.strengths[strength, None]
        return BetaMixture(
            weights, size * centre + correct, size * (1 - centre) + np.maximum(labels - correct, 0)
        )

    def _log_prior(self) -> Floats:
        by_offset = _normal_log_weights(self.offsets, 0.0, 1.5)
        by_slope = _normal_log_weights(self.slopes, 1.0, 0.5)
        return by_offset[:, None, None] + by_slope[None, :, None] + np.zeros(len(self.strengths))

    def _log_likelihood(self, centres: Floats, labels: Floats, correct: Floats) -> Floats:
        """Log marginal likelihood of the labels at every grid point [offsets, slopes, strengths]."""
        labelled = labels > 0
        n, r = labels[labelled], correct[labelled]
        wrong = np.maximum(n - r, 0)
        likelihood = np.zeros((len(self.offsets), len(self.slopes), len(self.strengths)))
        for k, strength in enumerate(self.strengths):
            alpha = strength * centres[:, :, labelled]
            beta = strength * (1 - centres[:, :, labelled])
            terms = special.betaln(alpha + r, beta + wrong) - special.betaln(alpha, beta)
            likelihood[:, :, k] = terms.sum(axis=2)
        return likelihood

    def _plausible(self, log_weights: Floats) -> tuple[npt.NDArray[np.intp], ...]:
        flat = log_weights.ravel()
        best_first = np.argsort(flat)[::-1][: self.components]
        kept = best_first[flat[best_first] > flat.max() + np.log(_PLAUSIBLE)]
        return np.unravel_index(kept, log_weights.shape)


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


def bin_prior(name: PriorName) -> Prior:
    """The prior of binwise accuracy with this name; over score bins the learned one has a slope too."""
    if name == "learned":
        return LearnedPrior(
            offsets=np.linspace(-4.5, 4.5, 25),
            slopes=np.linspace(0.0, 2.0, 9),
            strengths=np.geomspace(1.0, 1000.0, 8),
            components=256,
        )
    return group_prior(name)
