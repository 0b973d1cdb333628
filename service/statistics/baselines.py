"""Baselines: what the accuracy of a group was at least in its reference, which a decline is from."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.statistics.e_processes import confidence_sequence
from service.statistics.label_errors import WrongLabels

_NEAR_END: Final = 1e-6  # a reference's bound is clipped to be this far from 0 and 1


def thresholds_of_baselines(thresholds: Floats, wrong_labels: WrongLabels) -> Floats:
    """What the baseline of every group is held to, if its reference reached it; 0 without a threshold [G]."""
    # A baseline does not change with a learned bound, and so cannot be held to what follows from it.
    if wrong_labels.is_learned:
        return np.zeros(len(thresholds))
    return np.nan_to_num(thresholds * (1 - (wrong_labels.most_of_correct or 0.0)))


def baselines(
    correct: Floats, wrong: Floats, *, alpha: Floats, fixed: bool, threshold: Floats | float
) -> Floats:
    """Lower bounds of accuracies in the reference; NaN for groups without a label in it.

    If the number of labels was fixed in advance, by Clopper and Pearson (1934); else by a confidence
    sequence. A group that reached the threshold there is also held to it; it is one number, or [G], and 0
    without one. Counts are [G], and each bound fails with the probability `alpha` [G].
    """
    if fixed:
        lower = np.where(correct > 0, special.betaincinv(np.maximum(correct, 1), wrong + 1, alpha), 0.0)
    else:
        lower, _ = confidence_sequence(correct, wrong, 1 - alpha)
    lower = np.where(correct >= threshold * (correct + wrong), np.maximum(lower, threshold), lower)
    return np.where(correct + wrong > 0, np.clip(lower, _NEAR_END, 1 - _NEAR_END), np.nan)
