"""Tasks: the value of a label, as the expected reward of asking for one more of a group.

Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Table 1. A task is a class here and a line in `TASKS`. It
gives policies three views of the reward of every group in every run [R, G]: a draw by Thompson sampling, the
posterior mean, and an upper quantile; so policies need not know what the question is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics import beta as betas
from service.statistics import dirichlet
from service.statistics.beliefs import AccuracyBeliefs
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.comparison import expected_confidence
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.questions import LinearReward, Question, Task

_CONFIDENCE_DECIMALS = 7
_LEAST_PREVALENCE = 1e-6  # with fewer positive items, recall is undefined


class _LinearInAccuracy(Task[AccuracyBeliefs]):
    """Base of tasks whose reward is linear in the accuracy: that of being right with that probability."""

    kind = "accuracy"

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Under drawn accuracies."""
        alpha, beta = beliefs.draw(rng)
        return self._reward(alpha, beta, rng.beta(alpha, beta))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Under the mean accuracies."""
        alpha, beta = beliefs.matched()
        return self._reward(alpha, beta, betas.mean(alpha, beta))

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Under that end of the accuracies' interval which rewards more."""
        alpha, beta = beliefs.matched()
        return np.maximum(*(self._reward(alpha, beta, end) for end in _ends(alpha, beta, probability)))

    def _reward(self, alpha: Floats, beta: Floats, theta: Floats) -> Floats:
        """Reward of labels that are right with probability theta [R, G]."""
        raise NotImplementedError


class EstimateAccuracy(_LinearInAccuracy):
    """Reduce the traffic-weighted posterior variance of groupwise accuracy.

    The reward is p_g (Var(theta_g) - E Var(theta_g given one more label)), the label's outcome drawn from
    Bern(theta_g).
    """

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares

    def _reward(self, alpha: Floats, beta: Floats, theta: Floats) -> Floats:
        return self._weights * betas.expected_variance_drop(alpha, beta, theta)


class EstimateOverallAccuracy(EstimateAccuracy):
    """Reduce the posterior variance of the accuracy over all traffic, sum_g p_g theta_g.

    As for groupwise accuracy, with p_g squared, the weights of the variance of the sum. Groups by score bin
    suit it best.
    """

    @property
    def _weights(self) -> Floats:
        return self.question.cells.group_shares**2


class EstimatePrecisionRecall(EstimateAccuracy):
    """Reduce the posterior variance of precision and recall at every threshold.

    As for groupwise accuracy, weighted by how much they change with a group's accuracy instead of by traffic:
    rare groups of high scores decide the precision. Groups are by the positive class's score.
    """

    @property
    def _weights(self) -> Floats:
        if self.question.positive is None:
            raise ValueError("precision and recall need the probability of the positive class")
        return curve_influence(self.question.cells.group_shares, self.question.positive)


class CompareAccuracy(_LinearInAccuracy):
    """Decide which of two groups is more accurate, or that they are practically equivalent.

    The reward is the expected largest of the three probabilities (difference below, within, above the region)
    after one more label. Other groups are worth nothing.
    """

    def relevant(self, runs: int) -> Flags:
        """The two groups of every run [R, G]."""
        needed = np.zeros((runs, len(self.question.cells.group_shares)), dtype=np.bool_)
        needed[np.arange(runs)[:, None], self._pairs(runs)] = True
        return needed

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
        )
        reward = np.zeros(alpha.shape)
        # Where no label would change the verdict, the rewards of both groups differ by rounding alone.
        reward[runs, pairs] = np.round(confidence.T, _CONFIDENCE_DECIMALS)
        return reward


class IdentifyByAccuracy(Task[AccuracyBeliefs]):
    """Find the least (most) accurate groups: the reward is -theta_g (theta_g)."""

    kind = "accuracy"

    def sampled(self, beliefs: AccuracyBeliefs, rng: np.random.Generator) -> Floats:
        """Drawn accuracies."""
        return self.question.sign * rng.beta(*beliefs.draw(rng))

    def expected(self, beliefs: AccuracyBeliefs) -> Floats:
        """Mean accuracies."""
        return self.question.sign * beliefs.mixture.mean()

    def upper(self, beliefs: AccuracyBeliefs, probability: float) -> Floats:
        """Their quantiles."""
        alpha, beta = beliefs.matched()
        tail = probability if self.question.sign > 0 else 1 - probability
        return np.asarray(self.question.sign * special.betaincinv(alpha, beta, tail), np.float64)


class EstimateBins(LinearReward):
    """Reduce the traffic-weighted posterior variance of binwise accuracy.

    A label of a group is in bin b with its share p_gb: the reward is
    p_g sum_b p_gb^2 (Var(theta_gb) - E Var(theta_gb given one more label)), linear in theta.
    """

    kind = "bins"

    def upper(self, beliefs: BinBeliefs, probability: float) -> Floats:
        """Under that end of every bin's interval which rewards more: an upper bound of the quantile."""
        ends = _ends(beliefs.alpha, beliefs.beta, probability)
        return np.maximum(*(self._reward(beliefs, end) for end in ends))

    def _reward(self, beliefs: BinBeliefs, theta: Floats) -> Floats:
        cells = self.question.cells
        drop = betas.expected_variance_drop(beliefs.alpha, beliefs.beta, theta)
        weighted: Floats = cells.group_shares * (cells.shares**2 * drop).sum(axis=2)
        return weighted


class IdentifyByCalibration(Task[BinBeliefs]):
    """Find the least (best) calibrated groups: the reward is +(-) sum_b p_gb |theta_gb - s_gb|."""

    kind = "bins"

    def sampled(self, beliefs: BinBeliefs, rng: np.random.Generator) -> Floats:
        """Calibration error under drawn accuracies."""
        return self._error(np.abs(beliefs.draw(rng) - self.question.cells.scores))

    def expected(self, beliefs: BinBeliefs) -> Floats:
        """Mean calibration error."""
        return self._error(beliefs.distances())

    def upper(self, beliefs: BinBeliefs, probability: float) -> Floats:
        """Quantile of the calibration error, approximated as normal."""
        shares = self.question.cells.shares
        deviation: Floats = np.sqrt((shares**2 * beliefs.distance_variances()).sum(axis=2))
        return self.expected(beliefs) + float(special.ndtri(probability)) * deviation

    def _error(self, distances: Floats) -> Floats:
        error: Floats = (self.question.cells.shares * distances).sum(axis=2)
        return self.question.sign * error


class EstimateConfusion(LinearReward):
    """Reduce the traffic-weighted posterior variance of the confusion matrix.

    The reward is p_k sum_j (Var(theta_jk) - E Var(theta_jk given one more label)), with the label's true
    class drawn from theta_k, never from the prediction. It is linear in theta.
    """

    kind = "confusion"

    def upper(self, beliefs: ConfusionBeliefs, probability: float) -> Floats:
        """Quantile of the reward, approximated as normal; its variance is that of a cost."""
        alpha = beliefs.parameters()
        total = alpha.sum(axis=2)
        # The only part of the reward that depends on theta is 2 sum_j theta_j alpha_j over this.
        slope = 2 / ((total + 1) ** 2 * (total + 2))
        deviation: Floats = slope * np.sqrt(dirichlet.cost_moments(alpha, alpha)[1])
        margin = self.question.cells.group_shares * deviation * float(special.ndtri(probability))
        return self.expected(beliefs) + margin

    def _reward(self, beliefs: ConfusionBeliefs, theta: Floats) -> Floats:
        drop = dirichlet.expected_variance_drop(beliefs.parameters(), theta)
        return self.question.cells.group_shares * drop


class IdentifyByCost(LinearReward):
    """Find the most (least) costly groups: the reward is +(-) sum_j c_jk theta_jk."""

    kind = "confusion"

    @property
    def _costs(self) -> Floats:
        if self.question.costs is None:
            raise ValueError("identification by cost needs a cost matrix")
        return self.question.sign * self.question.costs

    def upper(self, beliefs: ConfusionBeliefs, probability: float) -> Floats:
        """Quantile of the cost, approximated as normal."""
        mean, variance = dirichlet.cost_moments(beliefs.parameters(), self._costs)
        return mean + float(special.ndtri(probability)) * np.sqrt(variance)

    def _reward(self, beliefs: ConfusionBeliefs, theta: Floats) -> Floats:  # noqa: ARG002 - one signature
        return np.asarray(np.einsum("rgk,gk->rg", theta, self._costs), np.float64)


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
    ("error_rates", "error_rates"): EstimateAccuracy,
}
"""Tasks by (task, metric), as configured."""


def _ends(alpha: Floats, beta: Floats, probability: float) -> tuple[Floats, Floats]:
    """Quantiles of Betas at 1 - probability and at the probability."""
    low, high = (special.betaincinv(alpha, beta, p) for p in (1 - probability, probability))
    return np.asarray(low, np.float64), np.asarray(high, np.float64)


def curve_influence(shares: Floats, positive: Floats) -> Floats:
    """Factor of the variance of P(positive) in every group [G], in the variance of precision and recall.

    With p_g the share of group g, q_g its probability of the positive class, c_t the share of the items that
    are called positive at threshold t, and r_t the recall there, to first order

        d precision_t / d q_g = p_g [g >= t] / c_t,   d recall_t / d q_g = p_g ([g >= t] - r_t) / sum p q,

    and the influence is the mean over the thresholds of the sum of both squares. Shares p and probabilities q
    are by group [G], the group of the lowest scores first.
    """
    tiny = np.finfo(float).tiny
    called = np.maximum(np.cumsum(shares[::-1])[::-1], tiny)
    right = np.cumsum((shares * positive)[::-1])[::-1]
    total = max(float(right[0]), _LEAST_PREVALENCE)
    above = np.tri(len(shares))
    precision, recall = above / called, (above - right / total) / total
    influence: Floats = shares**2 * (precision**2 + recall**2).mean(axis=1)
    return influence
