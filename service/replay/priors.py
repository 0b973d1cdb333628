"""Priors by name, for every kind of beliefs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from service.replay.pool import Pool
from service.statistics.beliefs import AccuracyBeliefs, LearnedAccuracy
from service.statistics.bin_beliefs import BinBeliefs, LearnedBins
from service.statistics.confusion_beliefs import ConfusionBeliefs, LearnedConfusion
from service.statistics.curves import LearnedCurve
from service.statistics.priors import FIXED_PRIORS
from service.statistics.questions import Kind


def beliefs_before(prior: str, kind: Kind, pool: Pool, runs: int) -> Any:
    """Beliefs of R runs before their first labels.

    Args:
        prior: its name.
        kind: what the beliefs are about.
        pool: gives scores and shares.
        runs: how many runs R.
    """
    makers: dict[Kind, Callable[[str, Pool, int], Any]] = {
        "accuracy": _accuracy,
        "bins": _bins,
        "confusion": _confusion,
    }
    return makers[kind](prior, pool, runs)


def _accuracy(prior: str, pool: Pool, runs: int) -> AccuracyBeliefs:
    if prior == "learned":
        return LearnedAccuracy(LearnedCurve(), pool.cells, runs)
    return AccuracyBeliefs.fixed(*FIXED_PRIORS[prior].parameters(pool.cells.group_scores), runs)


def _bins(prior: str, pool: Pool, runs: int) -> BinBeliefs:
    if prior == "learned":
        return LearnedBins(LearnedCurve(), pool.cells, runs)
    return BinBeliefs(pool.cells, *FIXED_PRIORS[prior].parameters(pool.cells.scores), runs)


def _confusion(prior: str, pool: Pool, runs: int) -> ConfusionBeliefs:
    if prior == "learned":
        others = pool.probabilities.copy()
        others[np.arange(len(others)), pool.predicted] = 0.0
        others = np.maximum(others, 1e-12)
        others[np.arange(len(others)), pool.predicted] = 0.0
        others /= others.sum(axis=1, keepdims=True)
        return LearnedConfusion(LearnedCurve(), pool.cells, others, pool.predicted, runs)
    return ConfusionBeliefs(FIXED_PRIORS[prior].dirichlet(pool.probabilities), runs)
