"""Tasks: what a label is worth, as the expected reward of asking a group for one more.

Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Table 1. A task is a class here and a line in `TASKS`. It
tells policies three things about the reward of every group in every run [R, G]: a draw of it by Thompson
sampling, its posterior mean, and an upper quantile; so policies need not know what the question is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics import beta as betas
from service.statistics import dirichlet
from service.statistics.beliefs import AccuracyBeliefs
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.binary.influence import curve_influence
from service.statistics.comparison import expected_confidence
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.laplace import Cells

Kind = Literal["accuracy", "bins", "confusion"]
Believed_contra = TypeVar("Believed_contra", contravariant=True)

_COMPARISON_NODES = 48
"""Nodes of the quadrature that compares rewards of two groups."""

_CONFIDENCE_DECIMALS = 7


@dataclass(frozen=True)
class Question:
    """What a task is about, beside its metric.

    Attributes:
        cells: what traffic tells of the groups.
        top_m: with identification: how many groups to find.
        extreme: with identification: which end of the metric.
        costs: with cost: of every true class, per group [G, K].
        pair: with comparison: the two groups [2], or those of every run [R, 2].
        region: with comparison: difference of accuracies that does not matter.
        positive: with performance: about the probability of the positive class, per group [G], of groups by
            the positive class's score, the lowest first.
    """

    cells: Cells
    top_m: int = 1
    extreme: Literal["lowest", "highest"] = "lowest"
    costs: Floats | None = None
    pair: Indices = field(default_factory=lambda: np.array([0, 1]))
    region: float = 0.05
    positive: Floats | None = None


class Task(Protocol[Believed_contra]):
    """A question about the groups of one grouping."""

    @property
    def kind(self) -> Kind:
        """What beliefs it reads."""

    @property
    def question(self) -> Question:
        """What it is about."""

    def sampled(self, beliefs: Believed_contra, rng: np.random.Generator) -> Floats:
        """Expected reward of one more label in every group [R, G], under drawn parameters."""

    def expected(self, beliefs: Believed_contra) -> Floats:
        """Posterior mean of the same [R, G]."""

    def upper(self, beliefs: Believed_contra, probability: float) -> Floats:
        """Its quantile [R, G]."""

    def relevant(self, runs: int) -> Flags | None:
        """Groups worth a label at all [R, G]; None for all of them."""


@dataclass(frozen=True)
class _EveryGroup:
    """Part of every task for which all groups are worth labels."""

    question: Question

    def relevant(self, runs: int) -> Flags | None:  # noqa: ARG002 - one signature for all tasks
        """All groups."""
        return None


@dataclass(frozen=True)
class EstimateAccuracy(_EveryGroup):
    """Reduce the traffic-weighted posterior variance of groupwise accuracy.

    The reward is p_g (Var(theta_g) - E Var(theta_g given one more label)), the label's outcome drawn from
    Bern(theta_g).
    """

    kind: Kind = "accuracy"

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn accuracies."""
        alpha, beta = beliefs.draw(rng)
        return self._weights * betas.expected_variance_drop(alpha, beta, rng.beta(alpha, beta))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Under the mean accuracies; the reward is linear in theta."""
        alpha, beta = beliefs.matched()
        return self._weights * betas.expected_variance_drop(alpha, beta, betas.mean(alpha, beta))

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Under that end of the accuracies which rewards more."""
        alpha, beta = beliefs.matched()
        rewards = (betas.expected_variance_drop(alpha, beta, end) for end in _ends(alpha, beta, probability))
        return self._weights * np.maximum(*rewards)


@dataclass(frozen=True)
class EstimateOverallAccuracy(EstimateAccuracy):
    """Reduce the posterior variance of the accuracy over all traffic, sum_g p_g theta_g.

    As for groupwise accuracy, with p_g squared: the variance of the sum has these weights. Groups by score
    bin are the right ones for it.
    """

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares**2


@dataclass(frozen=True)
class EstimatePrecisionRecall(EstimateAccuracy):
    """Reduce the posterior variance of precision and recall at every threshold.

    As for groupwise accuracy, weighted by how much they move with a group's accuracy instead of by traffic:
    rare groups of high scores decide on the precision. Groups are by the positive class's score.
    """

    @property
    def _weights(self) -> Floats:
        if self.question.positive is None:
            raise ValueError("precision and recall need the probability of the positive class")
        return curve_influence(self.question.cells.group_shares, self.question.positive)


@dataclass(frozen=True)
class IdentifyByAccuracy(_EveryGroup):
    """Find the least (most) accurate groups: the reward is -theta_g (theta_g)."""

    kind: Kind = "accuracy"

    @property
    def _sign(self) -> float:
        return -1.0 if self.question.extreme == "lowest" else 1.0

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Drawn accuracies."""
        return self._sign * rng.beta(*beliefs.draw(rng))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Mean accuracies."""
        return self._sign * beliefs.mixture.mean()

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Their quantiles."""
        alpha, beta = beliefs.matched()
        tail = probability if self._sign > 0 else 1 - probability
        return np.asarray(self._sign * special.betaincinv(alpha, beta, tail), np.float64)


@dataclass(frozen=True)
class EstimateBins(_EveryGroup):
    """Reduce the traffic-weighted posterior variance of binwise accuracy.

    A label of a group falls into bin b with its share p_gb: the reward is
    p_g sum_b p_gb^2 (Var(theta_gb) - E Var(theta_gb given one more label)).
    """

    kind: Kind = "bins"

    def sampled(self, beliefs: BinBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn accuracies."""
        return self._reward(beliefs, beliefs.draw(rng))

    def expected(self, beliefs: BinBeliefs) -> Floats:
        """Under the mean accuracies; the reward is linear in theta."""
        return self._reward(beliefs, beliefs.mean())

    def upper(self, beliefs: BinBeliefs, probability: float) -> Floats:
        """Under that end of every bin's accuracy which rewards more: an upper bound of the quantile."""
        ends = _ends(beliefs.alpha, beliefs.beta, probability)
        return np.maximum(*(self._reward(beliefs, end) for end in ends))

    def _reward(self, beliefs: BinBeliefs, theta: Floats) -> Floats:
        cells = self.question.cells
        drop = betas.expected_variance_drop(beliefs.alpha, beliefs.beta, theta)
        weighed: Floats = cells.group_shares * (cells.shares**2 * drop).sum(axis=2)
        return weighed


@dataclass(frozen=True)
class IdentifyByCalibration(_EveryGroup):
    """Find the least (best) calibrated groups: the reward is +(-) sum_b p_gb |theta_gb - s_gb|."""

    kind: Kind = "bins"

    @property
    def _sign(self) -> float:
        return 1.0 if self.question.extreme == "highest" else -1.0

    def sampled(self, beliefs: BinBeliefs, rng: np.random.Generator) -> Floats:
        """Calibration error under drawn accuracies."""
        cells = self.question.cells
        error: Floats = (cells.shares * np.abs(beliefs.draw(rng) - cells.scores)).sum(axis=2)
        return self._sign * error

    def expected(self, beliefs: BinBeliefs) -> Floats:
        """Mean calibration error."""
        error: Floats = self._sign * (self.question.cells.shares * beliefs.distances()).sum(axis=2)
        return error

    def upper(self, beliefs: BinBeliefs, probability: float) -> Floats:
        """Quantile of the calibration error, taken as normal."""
        shares = self.question.cells.shares
        deviation: Floats = np.sqrt((shares**2 * beliefs.distance_variances()).sum(axis=2))
        return self.expected(beliefs) + float(special.ndtri(probability)) * deviation


@dataclass(frozen=True)
class EstimateConfusion(_EveryGroup):
    """Reduce the traffic-weighted posterior variance of the confusion matrix.

    The reward is p_k sum_j (Var(theta_jk) - E Var(theta_jk given one more label)), with the label's true
    class drawn from theta_k: never from the prediction.
    """

    kind: Kind = "confusion"

    def sampled(self, beliefs: ConfusionBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn probabilities."""
        return self._reward(beliefs.parameters(), beliefs.draw(rng))

    def expected(self, beliefs: ConfusionBeliefs) -> Floats:
        """Under the mean probabilities; the reward is linear in theta."""
        return self._reward(beliefs.parameters(), beliefs.mean())

    def upper(self, beliefs: ConfusionBeliefs, probability: float) -> Floats:
        """Quantile of the reward, taken as normal: linear in theta, so its variance is that of a cost."""
        alpha = beliefs.parameters()
        total = alpha.sum(axis=2)
        # The reward's only part that hangs on theta is 2 sum_j theta_j alpha_j over this.
        slope = 2 / ((total + 1) ** 2 * (total + 2))
        deviation: Floats = slope * np.sqrt(dirichlet.cost_moments(alpha, alpha)[1])
        return self.expected(beliefs) + self.question.cells.group_shares * deviation * float(
            special.ndtri(probability)
        )

    def _reward(self, alpha: Floats, theta: Floats) -> Floats:
        return self.question.cells.group_shares * dirichlet.expected_variance_drop(alpha, theta)


@dataclass(frozen=True)
class IdentifyByCost(_EveryGroup):
    """Find the most (least) costly groups: the reward is +(-) sum_j c_jk theta_jk."""

    kind: Kind = "confusion"

    @property
    def _costs(self) -> Floats:
        costs = self.question.costs
        if costs is None:
            raise ValueError("identification by cost needs a cost matrix")
        return costs if self.question.extreme == "highest" else -costs

    def sampled(self, beliefs: ConfusionBeliefs, rng: np.random.Generator) -> Floats:
        """Cost under drawn probabilities."""
        return np.asarray(np.einsum("rgk,gk->rg", beliefs.draw(rng), self._costs), np.float64)

    def expected(self, beliefs: ConfusionBeliefs) -> Floats:
        """Mean cost."""
        return np.asarray(np.einsum("rgk,gk->rg", beliefs.mean(), self._costs), np.float64)

    def upper(self, beliefs: ConfusionBeliefs, probability: float) -> Floats:
        """Quantile of the cost, taken as normal."""
        mean, variance = dirichlet.cost_moments(beliefs.parameters(), self._costs)
        return mean + float(special.ndtri(probability)) * np.sqrt(variance)


@dataclass(frozen=True)
class CompareAccuracy(_EveryGroup):
    """Say which of two groups is more accurate, or that it does not matter.

    The reward is the expected largest of the three probabilities (Delta below, within, above the region)
    after one more label. Groups but the two are worth nothing.
    """

    kind: Kind = "accuracy"

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn accuracies."""
        alpha, beta = beliefs.draw(rng)
        return self._reward(alpha, beta, rng.beta(alpha, beta))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Under the mean accuracies; the reward is linear in theta."""
        alpha, beta = beliefs.matched()
        return self._reward(alpha, beta, betas.mean(alpha, beta))

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Under that end of the accuracies which rewards more."""
        alpha, beta = beliefs.matched()
        return np.maximum(*(self._reward(alpha, beta, end) for end in _ends(alpha, beta, probability)))

    def relevant(self, runs: int) -> Flags:
        """The two groups of every run [R, G]."""
        asked = np.zeros((runs, len(self.question.cells.group_shares)), dtype=np.bool_)
        asked[np.arange(runs)[:, None], self._pairs(runs)] = True
        return asked

    def _pairs(self, runs: int) -> Indices:
        return np.broadcast_to(self.question.pair, (runs, 2))

    def _reward(self, alpha: Floats, beta: Floats, theta: Floats) -> Floats:
        runs = np.arange(len(alpha))
        pairs = self._pairs(len(alpha)).T
        first, second = ((alpha[runs, groups], beta[runs, groups]) for groups in pairs)
        confidence = expected_confidence(
            first,
            second,
            *(theta[runs, groups] for groups in pairs),
            region=self.question.region,
            nodes=_COMPARISON_NODES,
            quick=True,
        )
        reward = np.zeros(alpha.shape)
        # Where no label would change the verdict, both groups promise the same but for rounding.
        reward[runs, pairs] = np.round(confidence.T, _CONFIDENCE_DECIMALS)
        return reward


TASKS: dict[tuple[str, str], Callable[[Question], Task[Any]]] = {
    ("estimation", "accuracy"): EstimateAccuracy,
    ("estimation", "overall_accuracy"): EstimateOverallAccuracy,
    ("estimation", "calibration"): EstimateBins,
    ("estimation", "confusion"): EstimateConfusion,
    ("identification", "accuracy"): IdentifyByAccuracy,
    ("identification", "calibration"): IdentifyByCalibration,
    ("identification", "cost"): IdentifyByCost,
    ("comparison", "accuracy"): CompareAccuracy,
    ("performance", "precision_recall"): EstimatePrecisionRecall,
}
"""Tasks by (task, metric), as configured."""


def _ends(alpha: Floats, beta: Floats, probability: float) -> tuple[Floats, Floats]:
    """Quantiles of Betas at the probability and at what it lacks of 1."""
    low, high = (special.betaincinv(alpha, beta, p) for p in (1 - probability, probability))
    return np.asarray(low, np.float64), np.asarray(high, np.float64)
