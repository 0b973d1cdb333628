"""Accuracy in every score bin of every group, with the calibration curve learned from the labels.

A group's bins share one curve, groups are alike, and bins scatter around their group's curve:

    m_gb = expit(a_g + b logit s_gb),  a_g ~ Normal(a, sigma),  theta_gb ~ Beta(N0 m_gb, N0 (1 - m_gb)).

Offsets a_g of the groups, their centre a and spread sigma, slope b and strength N0 are integrated out on
grids. Bins without such a group's offset would be told apart by their own few labels alone, and the
calibration error of a degraded group would be believed to be its healthy neighbours'.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.mixture import BetaMixture
from service.assessment.priors import PriorName, group_prior, inside, log_likelihood, normal_log

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_PLAUSIBLE = 1e-3
"""Slopes and strengths less plausible than this, relative to the best, are left out of the mixture."""

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
"""Points that stand for a group's offset, in standard deviations from its mean, and their weights."""


def _offsets() -> Floats:
    # Dense near 0, where models are nearly calibrated and labels tell small offsets apart.
    steps: Floats = 4.5 * np.sinh(np.linspace(-3.0, 3.0, 33)) / np.sinh(3.0)
    return steps


@dataclass(frozen=True)
class LearnedCurve:
    """The learned prior of binwise accuracy.

    Attributes:
        offsets: grid of a and a_g; prior of a Normal(0, 1.5).
        slopes: grid of b; prior Normal(1, 0.5).
        spreads: grid of sigma, each as likely.
        strengths: grid of N0; prior log-uniform.
        calibrated: probability that a is 0 and b is 1, so that a model may be believed to be calibrated.
        components: most pairs of slope and strength that the mixture keeps.
    """

    offsets: Floats = field(default_factory=_offsets)
    slopes: Floats = field(default_factory=lambda: np.linspace(0.25, 1.75, 7))
    spreads: Floats = field(default_factory=lambda: np.array([0.05, 0.15, 0.4, 1.0]))
    strengths: Floats = field(default_factory=lambda: np.geomspace(3.0, 10_000.0, 6))
    calibrated: float = 0.1
    components: int = 12

    def posterior(self, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
        """Beliefs about every bin, group by group [G * B].

        Within a component, offsets of all groups lie on the same side of their means: right for every group,
        not for draws of groups together.

        Args:
            scores: mean score of every group's bins [G, B].
            labels: effective number of labels [G, B].
            correct: effective number of correct ones [G, B].
        """
        groups, bins = scores.shape
        logits = special.logit(inside(scores))
        wrong = np.maximum(labels - correct, 0.0)
        seen = labels > 0
        evidence = _Evidence(logits[seen], correct[seen], wrong[seen], np.nonzero(seen)[0])
        populations, log_prior = self._populations(), self._log_prior()
        log_weights = np.empty((len(self.slopes), len(self.strengths), len(populations)))
        for i, slope in enumerate(self.slopes):
            for k, strength in enumerate(self.strengths):
                likelihood, log_scale = evidence.likelihood(self.offsets, slope, strength)
                evidences = np.log(_chances(populations, likelihood)).sum(axis=1)
                log_weights[i, k] = log_prior[:, i] + log_scale + evidences
        pairs = special.softmax(log_weights).sum(axis=2)
        weights, alphas, betas = [], [], []
        for i, k in self._plausible(pairs):
            likelihood, _ = evidence.likelihood(self.offsets, self.slopes[i], self.strengths[k])
            chances = special.softmax(log_weights[i, k])
            means = np.full(groups, self.offsets @ (chances @ populations))
            squares = np.full(groups, self.offsets**2 @ (chances @ populations))
            offsets = likelihood * (populations.T @ (chances[:, None] / _chances(populations, likelihood)))
            means[evidence.groups] = self.offsets @ offsets
            squares[evidence.groups] = self.offsets**2 @ offsets
            deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
            nodes = means + _NODES[:, None] * deviations
            centres = special.expit(nodes[:, :, None] + self.slopes[i] * logits)
            alphas.append(self.strengths[k] * centres + correct)
            betas.append(self.strengths[k] * (1 - centres) + wrong)
            weights.append(pairs[i, k] * _NODE_WEIGHTS)
        total = np.concatenate(weights)
        shape = (len(total), groups * bins)
        return BetaMixture(
            total / total.sum(), np.concatenate(alphas).reshape(shape), np.concatenate(betas).reshape(shape)
        )

    def _populations(self) -> Floats:
        """P(a_g) over the offsets, for every centre and spread [centres * spreads, offsets]."""
        scaled = (self.offsets - self.offsets[:, None, None]) / self.spreads[None, :, None]
        density = np.exp(-0.5 * scaled**2) * np.gradient(self.offsets)
        populations: Floats = density / density.sum(axis=2, keepdims=True)
        return populations.reshape(-1, len(self.offsets))

    def _log_prior(self) -> Floats:
        """Log prior of every centre with its spread, and slope [centres * spreads, slopes]."""
        centres = np.exp(normal_log(self.offsets, 0.0, 1.5)) * np.gradient(self.offsets)
        slopes = np.exp(normal_log(self.slopes, 1.0, 0.5))
        prior = (1 - self.calibrated) * np.outer(centres / centres.sum(), slopes / slopes.sum())
        prior[np.abs(self.offsets).argmin(), np.abs(self.slopes - 1).argmin()] += self.calibrated
        return np.repeat(np.log(prior), len(self.spreads), axis=0)

    def _plausible(self, weights: Floats) -> list[tuple[int, int]]:
        """Positions of slopes and strengths that stand for all."""
        flat = weights.ravel()
        best = np.argsort(flat)[::-1][: self.components]
        kept = best[flat[best] > _PLAUSIBLE * flat.max()]
        return [divmod(int(position), len(self.strengths)) for position in kept]


class _Evidence:
    """Labels of the bins that have some, as columns [n], in the order of their groups."""

    def __init__(self, logits: Floats, correct: Floats, wrong: Floats, groups: Indices) -> None:
        self._logits = logits
        self._correct = correct
        self._wrong = wrong
        self.groups, self._starts = np.unique(groups, return_index=True)

    def likelihood(self, offsets: Floats, slope: float, strength: float) -> tuple[Floats, float]:
        """Likelihood of every offset for every group with labels [offsets, groups], each group's highest 1.

        Returns:
            The likelihood, and the log of the factor that is left out.
        """
        centres = special.expit(offsets[:, None] + slope * self._logits)
        logs = log_likelihood(strength * centres, strength * (1 - centres), self._correct, self._wrong)
        if not len(self._starts):
            return np.ones((len(offsets), 0)), 0.0
        by_group = np.add.reduceat(logs, self._starts, axis=1)
        highest = by_group.max(axis=0)
        return np.exp(by_group - highest), float(highest.sum())


def _chances(populations: Floats, likelihood: Floats) -> Floats:
    """Likelihood of every population [populations] for every group, kept above 0."""
    chances: Floats = np.maximum(populations @ likelihood, np.finfo(float).tiny)
    return chances


def bin_beliefs(name: PriorName, *, scores: Floats, labels: Floats, correct: Floats) -> BetaMixture:
    """Beliefs about every score bin of every group [G * B], under the prior with this name.

    Args:
        name: in the configuration.
        scores: mean score of every group's bins [G, B].
        labels: effective number of labels [G, B].
        correct: effective number of correct ones [G, B].
    """
    if name == "learned":
        return LearnedCurve().posterior(scores=scores, labels=labels, correct=correct)
    return group_prior(name).posterior(scores=scores.ravel(), labels=labels.ravel(), correct=correct.ravel())
