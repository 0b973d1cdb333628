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
Indices = npt.NDArray[np.intp]

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


def no_detectors(group_count: int) -> Floats:
    """Those of groups without a label yet, as logarithms, one per decline [G, K]."""
    return np.full((group_count, len(_MORE_ERRORS)), -np.inf)


def advance_detectors(log_sums: Floats, correct: Flags, groups: Indices, accuracy: Floats) -> Floats:
    """Detectors of many groups after further labels, as logarithms, one per decline [G, K].

    The recursion of Shiryaev and Roberts, R' = (R + 1) L, of n labels at once: with S the product of their
    ratios it is S_n (R + the sum over j of 1 / S_(j - 1)).

    Args:
        log_sums: before these labels [G, K], such as `no_detectors`.
        correct: what the labels said, in their order within each group [n].
        groups: of every label, ascending [n].
        accuracy: that is reached or exceeded before a decline, strictly within 0 and 1 [G].

    Raises:
        ValueError: the accuracy of a group with labels is not strictly within 0 and 1.
    """
    advanced = log_sums.copy()
    if not len(correct):
        return advanced
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    there = groups[first]
    rank = np.repeat(np.arange(len(there)), np.diff(first, append=len(groups)))
    right, wrong = _log_ratios_of_groups(accuracy[there])
    ratios = np.where(correct[:, None], right[rank], wrong[rank])
    total = np.cumsum(ratios, axis=0)
    before = total - ratios
    start = before[first]
    begun = np.logaddexp.reduceat(start[rank] - before, first, axis=0)
    product = total[np.append(first[1:], len(groups)) - 1] - start
    advanced[there] = product + np.logaddexp(advanced[there], begun)
    return advanced


def log_detectors(log_sums: Floats) -> Floats:
    """Logarithm of the e-detector of every group [G], mixed over declines.

    Args:
        log_sums: as `advance_detectors` tells them [G, K].
    """
    mixed: Floats = special.logsumexp(log_sums, axis=1) - np.log(len(_MORE_ERRORS))
    return mixed


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
    right, wrong = _log_ratios_of_groups(np.array([accuracy]))
    ratios: Floats = np.where(correct[:, None], right, wrong)
    return ratios


def _log_ratios_of_groups(accuracy: Floats) -> tuple[Floats, Floats]:
    """Of a label that is right and of one that is wrong, of every decline against none [G, K]."""
    if not np.all((accuracy > 0) & (accuracy < 1)):
        raise ValueError(f"an accuracy of {accuracy} is not strictly within 0 and 1")
    p = accuracy[:, None]
    lower = special.expit(special.logit(p) - np.log(_MORE_ERRORS))
    return np.log(lower / p), np.log((1 - lower) / (1 - p))
