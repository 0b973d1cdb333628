"""Tasks about the confusion matrix: the value of a label for its entries, or for costs."""

from __future__ import annotations

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics import dirichlet
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.questions import LinearReward


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
