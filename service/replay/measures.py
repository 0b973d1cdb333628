"""What is measured while replaying: the paper's measures, per run.

A measure looks at the beliefs after every label, and afterwards tells arrays by name: those in `per_run`
have a row for every run, those in `totals` are sums over the runs. So results of several batches of runs are
joined by appending the one and adding the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.arrays import Floats, Indices
from service.replay.pool import Pool
from service.statistics import beta as betas
from service.statistics.beliefs import AccuracyBeliefs, LearnedAccuracy
from service.statistics.bin_beliefs import BinBeliefs
from service.statistics.comparison import rope_probabilities
from service.statistics.confusion_beliefs import ConfusionBeliefs
from service.statistics.mixture import BetaMixture

IDENTIFIED = 0.99
"""Groups count as identified while the mean reciprocal rank is above this."""

CLOSE_CONFIDENCE = 0.05
"""A comparison counts as settled while its confidence is within this, relatively, of the whole pool's."""

_NODES = 48
"""Nodes of the quadrature behind a verdict: probabilities are known to 2e-6."""


@dataclass
class Result:
    """What measures found: arrays with a row for every run [R, ...], and sums over the runs."""

    per_run: dict[str, Floats]
    totals: dict[str, Floats]

    def joined(self, other: Result) -> Result:
        """Of both batches of runs."""
        return Result(
            {name: np.concatenate([rows, other.per_run[name]]) for name, rows in self.per_run.items()},
            {name: total + other.totals[name] for name, total in self.totals.items()},
        )


class _AtLabels:
    """Part of measures that look after certain numbers of labels alone."""

    def __init__(self, pool: Pool, at: Sequence[int]) -> None:
        self._pool, self._at = pool, frozenset(at)
        self._shares, self._truth = pool.cells.group_shares, pool.accuracy
        self._columns: dict[str, list[Floats]] = {}

    def record(self, used: int, beliefs: Any) -> None:
        """Look, if it is time."""
        if used in self._at:
            beliefs.refresh()
            for name, column in self._look(beliefs).items():
                self._columns.setdefault(name, []).append(column)

    def result(self) -> Result:
        """Values of every run at every number of labels [R, C]."""
        return Result({name: np.stack(columns, axis=1) for name, columns in self._columns.items()}, {})

    def _look(self, beliefs: Any) -> dict[str, Floats]:
        raise NotImplementedError


class AccuracyErrors(_AtLabels):
    """Errors of groupwise and overall accuracy, and the share of intervals that hold the truth."""

    def __init__(self, pool: Pool, at: Sequence[int], mass: float) -> None:
        super().__init__(pool, at)
        self._tail = (1 - mass) / 2
        self._overall = float(self._shares @ self._truth)

    def _look(self, beliefs: AccuracyBeliefs) -> dict[str, Floats]:
        shares, truth, mean = self._shares, self._truth, beliefs.mixture.mean()
        # As in the service: one-sided where all labels agree.
        some, correct = beliefs.observed > 0, beliefs.observed_correct
        to_zero, to_one = some & (correct == 0), some & (correct == beliefs.observed)
        # A pool of n items knows its accuracy in steps of 1 / n.
        half_step = 0.5 / self._pool.sizes
        below = beliefs.mixture.probability_below(np.clip(truth - half_step, 0.0, 1.0))
        above = beliefs.mixture.probability_below(np.clip(truth + half_step, 0.0, 1.0))
        found = {
            "rmse": np.sqrt((shares * (mean - truth) ** 2).sum(axis=1)),
            "coverage": (((below < 1 - self._tail) | to_one) & ((above > self._tail) | to_zero)).mean(axis=1),
        }
        overall = overall_accuracy(beliefs, shares)
        rank = overall.probability_below(self._overall)[:, 0]
        return found | {
            "overall_error": overall.mean()[:, 0] - self._overall,
            "overall_coverage": ((rank > self._tail) & (rank < 1 - self._tail)).astype(np.float64),
        }


def overall_accuracy(beliefs: AccuracyBeliefs, shares: Floats) -> BetaMixture:
    """Beliefs about the accuracy over all traffic [R, J, 1]."""
    if isinstance(beliefs, LearnedAccuracy):
        return beliefs.overall()
    alpha, beta = beliefs.matched()
    mean, variance = (shares * betas.mean(alpha, beta)), (shares**2 * betas.variance(alpha, beta))
    alpha, beta = betas.matching(mean.sum(axis=1), variance.sum(axis=1))
    return BetaMixture(np.ones((len(alpha), 1)), alpha[:, None, None], beta[:, None, None])


class BinErrors(_AtLabels):
    """Errors of binwise accuracy, where groups are score bins, and of the ECE that it implies.

    Under fixed priors the ECE is that of the mean accuracies, as in the paper; under the learned one it is
    the posterior mean of the ECE.
    """

    def __init__(self, pool: Pool, at: Sequence[int]) -> None:
        super().__init__(pool, at)
        self._scores = pool.cells.group_scores
        self._ece = float(self._shares @ np.abs(self._truth - self._scores))

    def _look(self, beliefs: AccuracyBeliefs) -> dict[str, Floats]:
        shares, mean = self._shares, beliefs.mixture.mean()
        if isinstance(beliefs, LearnedAccuracy):
            mixture = beliefs.mixture
            distances = betas.distance_moments(mixture.alpha, mixture.beta, self._scores)[0]
            ece = np.einsum("rj,rjg,g->r", mixture.weights, distances, shares)
        else:
            ece = (shares * np.abs(mean - self._scores)).sum(axis=1)
        return {
            "rmse": np.sqrt((shares * (mean - self._truth) ** 2).sum(axis=1)),
            "ece_error_percent": 100 * _relative(np.abs(ece - self._ece), self._ece),
        }


def _relative(errors: Floats, whole: float) -> Floats:
    """Errors as shares of the whole; NaN of nothing, as where scores are all 1 and right."""
    return errors / whole if whole > 0 else np.full(errors.shape, np.nan)


class ConfusionErrors(_AtLabels):
    """Error of the confusion matrix, absolute and relative to what scores alone say."""

    def __init__(self, pool: Pool, at: Sequence[int]) -> None:
        super().__init__(pool, at)
        self._scores_alone = float(self._rmse(pool.probabilities[None])[0])

    def _look(self, beliefs: ConfusionBeliefs) -> dict[str, Floats]:
        rmse = self._rmse(beliefs.mean())
        return {"rmse": rmse, "relative_rmse": _relative(rmse, self._scores_alone)}

    def _rmse(self, mean: Floats) -> Floats:
        squares = ((mean - self._pool.confusion) ** 2).sum(axis=2)
        return np.asarray(np.sqrt((self._shares * squares).sum(axis=1)), np.float64)


class Identification:
    """How well the extreme groups are found, label by label.

    The mean reciprocal rank is (1/m) sum_i 1 / rank_i over the m groups that are truly extreme, and rank_i is
    1 plus the number of other groups ahead; ties are decided by chance. Where groups are truly alike and only
    some of them are among the m, any of them will do.

    The merit is of every group in every run [R, G], from the beliefs; the highest are taken for extreme.
    `truly` is the same from the whole pool [G], and `rng` is for ties.
    """

    def __init__(
        self,
        merit: Callable[[Any], Floats],
        truly: Floats,
        top_m: int,
        *,
        runs: int,
        budget: int,
        rng: np.random.Generator,
    ) -> None:
        self._merit, self._rng = merit, rng
        order = np.argsort(-truly, kind="stable")
        self._top, self._others = order[:top_m], order[top_m:]
        self._alike = order[np.isclose(truly[order], truly[order[top_m - 1]], rtol=1e-9, atol=1e-12)]
        self._sum = np.zeros(budget + 1)
        self._last_failure = np.full(runs, -1)
        self._first_success = np.full(runs, budget + 1)

    def record(self, used: int, beliefs: Any) -> None:
        """Compare the ranks after so many labels."""
        merit = self._merit(beliefs)
        if len(self._alike) > 1:
            merit = merit.copy()
            merit[:, self._alike] = -np.sort(-merit[:, self._alike], axis=1)
        others = merit[:, self._others]
        ranks = np.zeros(len(merit))
        lots: Floats | None = None
        for group in self._top:
            own = merit[:, group, None]
            ties = others == own
            if group in self._alike:
                ties &= ~np.isin(self._others, self._alike)
            ahead = (others > own).sum(axis=1)
            if ties.any():
                # One lot for every group: a coin for every pair would all but rule out the ends of the tie.
                lots = self._rng.random(merit.shape) if lots is None else lots
                ahead += (ties & (lots[:, self._others] > lots[:, group, None])).sum(axis=1)
            ranks += 1 / (1 + ahead)
        reciprocal = ranks / len(self._top)
        found = reciprocal > IDENTIFIED
        self._sum[used] += reciprocal.sum()
        self._last_failure[~found] = used
        self._first_success[found] = np.minimum(self._first_success[found], used)

    def result(self) -> Result:
        """Labels from which every run stays, and is first, identified [R]; sums of ranks [budget + 1].

        A run that is never identified is so from budget + 1 labels on.
        """
        return Result(
            {
                "stays": (self._last_failure + 1).astype(np.float64),
                "first": self._first_success.astype(np.float64),
            },
            {"reciprocal_rank": self._sum, "runs": np.array([float(len(self._last_failure))])},
        )


class Comparisons:
    """When comparisons of two groups are settled, label by label.

    A comparison is settled if the most probable of the three regions is that of the whole pool, and its
    probability is within 5% of the whole pool's.

    The two groups of every run are `pairs` [R, 2]; differences of accuracies within `region` do not matter.
    """

    def __init__(self, pool: Pool, pairs: Indices, region: float, budget: int) -> None:
        self._pairs, self._region, self._budget = pairs, region, budget
        self._every = np.arange(len(pairs))
        right = pool.accuracy * pool.sizes
        alpha, beta = 1 + right, 1 + pool.sizes - right
        truth = rope_probabilities(*((alpha[groups], beta[groups]) for groups in pairs.T), region=region)
        self._verdict, self._confidence = truth.argmax(axis=1), truth.max(axis=1)
        self._first_success = np.full(len(pairs), budget + 1)
        self._last_failure = np.full(len(pairs), -1)
        self._most = pool.sizes[pairs].sum(axis=1)

    def record(self, used: int, beliefs: AccuracyBeliefs) -> None:
        """Compare the verdicts after so many labels."""
        alpha, beta = beliefs.matched()
        pair = ((alpha[self._every, groups], beta[self._every, groups]) for groups in self._pairs.T)
        probabilities = rope_probabilities(*pair, region=self._region, nodes=_NODES)
        settled = probabilities.argmax(axis=1) == self._verdict
        settled &= np.abs(probabilities.max(axis=1) / self._confidence - 1) < CLOSE_CONFIDENCE
        going = used <= self._most
        self._last_failure[going & ~settled] = used
        self._first_success[settled] = np.minimum(self._first_success[settled], used)

    def result(self) -> Result:
        """Labels until first settled, labels from which on settled, and whether never settled [R].

        A comparison that is never settled counts with all labels of both groups, or of the budget.
        """
        most = np.minimum(self._most, self._budget)
        never = self._first_success > most
        return Result(
            {
                "first": np.where(never, most, self._first_success).astype(np.float64),
                "stays": np.minimum(self._last_failure + 1, most).astype(np.float64),
                "never": never.astype(np.float64),
            },
            {},
        )


def ece_merit(pool: Pool) -> Callable[[BinBeliefs], Floats]:
    """Mean calibration error of every group [R, G], from the beliefs."""
    shares = pool.cells.shares
    return lambda beliefs: np.asarray(np.einsum("rgb,gb->rg", beliefs.distances(), shares), np.float64)
