"""How often first labels are wrong at most: stated, or learned from gold items by an anytime-valid bound.

Evidence holds whatever labels are wrong, if the share of wrong labels about correct predictions is at most d.
A learned bound U changes with every gold label. Let d* be the least of the tried bounds that is no less than
the true share: the e-process for d* is valid. As long as U is no less than the true share, d* is among the
tried bounds up to U, so the minimum over these of the e-values is at most the e-value for d*, at every time.
That U is ever less has a probability of `ALPHA_SHARE` times alpha at most, which evidence does without.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from service.statistics.e_processes import log_e_below

ALPHA_SHARE: Final = 0.2
"""Of alpha, the part that pays for both learned bounds, in equal parts."""

ERROR_BOUNDS: Final = (
    *(each / 400 for each in range(1, 41)),
    *(each / 100 for each in range(11, 21)),
    *(0.25, 0.30),
)
"""Bounds that are tried, ascending; if the share may be higher than the last one, there is no evidence."""


class WrongLabels(NamedTuple):
    """Shares of first labels that are wrong at most, for which evidence must hold.

    Attributes:
        of_correct: bounds for labels about correct predictions, ascending: evidence holds for each of them.
            Empty if none is known.
        of_incorrect: bound for labels about incorrect predictions; 1 if none is known.
        is_learned: whether these are learned.
    """

    of_correct: tuple[float, ...] = (0.0,)
    of_incorrect: float = 0.0
    is_learned: bool = False

    @property
    def most_of_correct(self) -> float | None:
        """Bound for labels about correct predictions; None if none is known."""
        return self.of_correct[-1] if self.of_correct else None

    @property
    def most_of_incorrect(self) -> float | None:
        """Bound for labels about incorrect predictions; None if none is known."""
        return self.of_incorrect if self.of_incorrect < 1 else None

    def left_of(self, alpha: float) -> float:
        """What is left of alpha for evidence."""
        return (1 - ALPHA_SHARE) * alpha if self.is_learned else alpha


NEVER_WRONG: Final = WrongLabels()


def stated(share: float) -> WrongLabels:
    """A bound that does not change."""
    return WrongLabels((share,), share)


class GoldCounts(NamedTuple):
    """First labels about gold items: all of them and wrong ones, by whether the prediction is correct.

    A skipped request counts as a wrong label.
    """

    of_correct: int = 0
    wrong_of_correct: int = 0
    of_incorrect: int = 0
    wrong_of_incorrect: int = 0

    def plus(self, more: GoldCounts) -> GoldCounts:
        """Both together."""
        return GoldCounts(*(one + other for one, other in zip(self, more, strict=True)))


def learned(counts: GoldCounts, alpha: float) -> WrongLabels:
    """Bounds that hold at all times at once, with a probability of 1 - `ALPHA_SHARE` alpha."""
    level = ALPHA_SHARE * alpha / 2
    correct = error_bound(counts.of_correct, counts.wrong_of_correct, level)
    incorrect = error_bound(counts.of_incorrect, counts.wrong_of_incorrect, level)
    return WrongLabels(
        () if correct is None else tuple(bound for bound in ERROR_BOUNDS if bound <= correct),
        1.0 if incorrect is None else incorrect,
        is_learned=True,
    )


def error_bound(labels: int, wrong: int, level: float) -> float | None:
    """Upper bound of the share of wrong labels, which is ever too low with a probability of `level` at most.

    It is the least of the tried bounds such that it and all higher ones are rejected: each is a null
    hypothesis "this share or more are wrong", whose e-process reaches 1 / level. If it is too low, the
    highest tried bound that is no more than the true share is rejected. None if the last one is not rejected.
    """
    tried = np.array(ERROR_BOUNDS)
    log_e = log_e_below(np.full(len(tried), wrong), np.full(len(tried), labels - wrong), tried)
    kept = np.flatnonzero(log_e < -np.log(level))
    first = 0 if not kept.size else int(kept[-1]) + 1
    return None if first == len(tried) else ERROR_BOUNDS[first]
