"""Do labels contradict the score model? The Bayes factor of shares that change in steps against it.

The score model expects the positive share to change smoothly with the score. Against it stands a share that
is constant between steps: from one stratum with labels to the next there is a step with a fixed probability,
and shares between steps are independent, with Jeffreys' prior. The marginal likelihood is a sum over all
positions of steps, by dynamic programming (Barry and Hartigan, Annals of Statistics 1992; Fearnhead,
Statistics and Computing 2006). It assumes nothing of what scores mean, and not even an order.

Both are probabilities of the same labels, given their scores. Where steps may be depends on which strata have
labels, so the factor is no test martingale, and that it reaches F with a probability of at most 1 / F is no
theorem. How often labels of a right score model reach it was simulated: docs/binary-classifiers.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Floats

LOG_CONTRADICTED: Final = float(np.log(10))
"""Log of the Bayes factor from which on labels contradict the score model (Kass and Raftery, JASA 1995)."""

_STEP_PROBABILITY: Final = 0.1  # from one stratum with labels to the next
_JEFFREYS: Final = 0.5


def log_evidence_of_steps(positives: Floats, negatives: Floats) -> float:
    """Log probability of the labels of strata of scores, which ascend, if the positive share has steps.

    Numbers of labels may be effective numbers [B]. Takes time in proportion to the square of the strata.
    """
    labelled = positives + negatives > 0
    found, others = (np.append(0.0, np.cumsum(labels[labelled])) for labels in (positives, negatives))
    log_sums = np.zeros(len(found))
    for end in range(1, len(found)):
        starts = np.arange(end)
        log_step = np.where(starts > 0, np.log(_STEP_PROBABILITY), 0.0)
        log_steady = (end - starts - 1) * np.log1p(-_STEP_PROBABILITY)
        log_share = special.betaln(
            found[end] - found[:end] + _JEFFREYS, others[end] - others[:end] + _JEFFREYS
        ) - special.betaln(_JEFFREYS, _JEFFREYS)
        log_sums[end] = special.logsumexp(log_sums[:end] + log_step + log_steady + log_share)
    return float(log_sums[-1])
