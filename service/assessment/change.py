"""When did a group become less accurate? An e-detector, whose average run length to a false alarm is kept.

At every label a new e-process begins, against "from here on the accuracy is p or more"; their sum is the
e-detector (Shin, Ramdas and Rinaldo, *E-detectors*, New England Journal of Statistics in Data Science 2023,
definition 2.2). If it alarms when the sum reaches c, then without a decline it takes c labels on average
until it does, or more. Of likelihood ratios the sum is that of Shiryaev and Roberts; here it is mixed over
several declines, as the size of one is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_MORE_ERRORS: Final[Floats] = np.array([1.6, 2.5, 4.0, 8.0])
"""By so much the odds of an error may have grown; equally probable."""


@dataclass(frozen=True)
class ChangePoint:
    """After which label a decline is likeliest to have begun.

    Attributes:
        after: number of labels before it.
        earliest: lower end of the interval of this number.
        latest: upper end.
    """

    after: int
    earliest: int
    latest: int


def log_e_detector(correct: Flags, accuracy: float) -> Floats:
    """Logarithm of the e-detector after every label [n].

    Args:
        correct: what labels said, in their order [n].
        accuracy: p, which is reached or exceeded before a decline; strictly within 0 and 1.

    Raises:
        ValueError: the accuracy is not strictly within 0 and 1.
    """
    ratios = _log_ratios(correct, accuracy)
    before = np.cumsum(ratios, axis=0) - ratios
    # Sum over beginnings j of exp(S_n - S_j), of all n at once.
    begun = np.logaddexp.accumulate(-before, axis=0)
    together: Floats = special.logsumexp(before + ratios + begun, axis=1) - np.log(len(_MORE_ERRORS))
    return together


def change_point(correct: Flags, accuracy: float, mass: float) -> ChangePoint:
    """When a decline began, if there was one: by the likelihood of each beginning, all as probable before.

    Args:
        correct: what labels said, in their order [n], at least one.
        accuracy: that is reached or exceeded before a decline; strictly within 0 and 1.
        mass: probability inside the interval.

    Raises:
        ValueError: there is no label, or the accuracy is not strictly within 0 and 1.
    """
    if not len(correct):
        raise ValueError("without a label no beginning is likelier than another")
    ratios = _log_ratios(correct, accuracy)
    since = np.cumsum(ratios[::-1], axis=0)[::-1]
    likelihood = special.logsumexp(since, axis=1)
    share = special.softmax(likelihood)
    below = np.cumsum(share)
    tail = (1 - mass) / 2
    return ChangePoint(
        after=int(np.argmax(likelihood)),
        earliest=int(np.searchsorted(below, tail)),
        latest=min(int(np.searchsorted(below, 1 - tail)), len(correct) - 1),
    )


def _log_ratios(correct: Flags, accuracy: float) -> Floats:
    """Of every label, of every decline against none [n, K]."""
    if not 0 < accuracy < 1:
        raise ValueError(f"an accuracy of {accuracy:g} is not strictly within 0 and 1")
    lower = special.expit(special.logit(accuracy) - np.log(_MORE_ERRORS))
    ratios: Floats = np.where(
        correct[:, None], np.log(lower / accuracy), np.log((1 - lower) / (1 - accuracy))
    )
    return ratios
