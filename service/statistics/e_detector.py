"""When did a group become less accurate? An e-process against "it never did", whatever the label.

At every label a bet begins on "from here on the accuracy is less than p", with a share of the stake that was
set aside for that label before: the share of label j is F(j - 1) - F(j), with F(j) = (1 + j / 100)^(-1/2).
The shares sum to 1, so the stakes that are not placed yet and the wealth of all bets together are an
e-process: it ever reaches 1 / alpha with a probability of alpha at the most, as long as the accuracy is p
or more (Ville's inequality). A bet on label j costs ln(1 / share): the shares shrink slowly, so a late
decline is found nearly as soon as an early one. Each bet is mixed over several declines, as the size of one
is not known. (With a whole stake for every label the sum would be the e-detector of Shin, Ramdas and
Rinaldo, New England Journal of Statistics in Data Science 2023. It is quicker, but a healthy group alarms
again and again: only the time between its alarms is bounded.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_MORE_ERRORS: Final[Floats] = np.array([1.6, 2.5, 4.0, 8.0])
"""By so much the odds of an error may have grown; equally probable."""

_EVEN_LABELS: Final = 100.0
"""The first so many labels have nearly the same share of the stake; of later ones it shrinks slowly."""

_DECAY: Final = 0.5
"""After n labels the share that is not staked yet falls as n to the power of minus this."""


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


def log_e_changed(correct: Flags, accuracy: float) -> Floats:
    """Logarithm of the evidence of a decline, after every label [n].

    Args:
        correct: what labels said, in their order [n].
        accuracy: p, which is reached or exceeded before a decline; strictly within 0 and 1.

    Raises:
        ValueError: the accuracy is not strictly within 0 and 1.
    """
    ratios = _log_ratios(correct, accuracy)
    before = np.cumsum(ratios, axis=0) - ratios
    numbers = np.arange(len(correct), dtype=np.float64)
    # Sum over beginnings j of the stake times exp(S_n - S_j), of all n at once.
    begun = np.logaddexp.accumulate(_log_stakes(numbers)[:, None] - before, axis=0)
    return log_wealth_of_bets(before + ratios + begun, numbers + 1)


def no_bets(group_count: int) -> Floats:
    """Wealth of the bets of groups without a label yet, as logarithms, one per decline [G, K]."""
    return np.full((group_count, len(_MORE_ERRORS)), -np.inf)


def advance_bets(
    log_sums: Floats, correct: Flags, groups: Indices, accuracy: Floats, labels: Indices
) -> Floats:
    """Wealth of the bets of many groups after further labels, as logarithms, one per decline [G, K].

    The recursion W' = (W + stake) L, of n labels at once: with S the product of their ratios it is
    S_n (W + the sum over j of stake_j / S_(j - 1)).

    Args:
        log_sums: before these labels [G, K], such as `no_bets`.
        correct: what the labels said, in their order within each group [n].
        groups: of every label, ascending [n].
        accuracy: that is reached or exceeded before a decline, strictly within 0 and 1 [G].
        labels: how many labels of every group came before these [G].

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
    numbers = np.arange(len(groups)) - first[rank] + labels[groups]
    total = np.cumsum(ratios, axis=0)
    before = total - ratios
    start = before[first]
    staked = _log_stakes(numbers.astype(np.float64))[:, None]
    begun = np.logaddexp.reduceat(start[rank] - before + staked, first, axis=0)
    product = total[np.append(first[1:], len(groups)) - 1] - start
    advanced[there] = product + np.logaddexp(advanced[there], begun)
    return advanced


def log_wealth_of_bets(log_sums: Floats, labels: Floats) -> Floats:
    """Logarithm of the evidence of a decline [G]: all bets, mixed over declines, and what is not staked yet.

    Args:
        log_sums: as `advance_bets` returns them [G, K].
        labels: how many labels of every group these bets have seen [G].
    """
    mixed = special.logsumexp(log_sums, axis=1) - np.log(len(_MORE_ERRORS))
    found: Floats = np.logaddexp(mixed, _log_unstaked(labels))
    return found


def _log_unstaked(labels: Floats) -> Floats:
    """Logarithm of the share of the stake that is left after so many labels, of any shape."""
    return -_DECAY * np.log1p(labels / _EVEN_LABELS)


def _log_stakes(labels: Floats) -> Floats:
    """Logarithm of the share that is staked on the next label, after so many labels, of any shape."""
    left = _log_unstaked(labels)
    return left + np.log(-np.expm1(_log_unstaked(labels + 1) - left))


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
    return np.where(correct[:, None], right, wrong)


def _log_ratios_of_groups(accuracy: Floats) -> tuple[Floats, Floats]:
    """Of a label that is right and of one that is wrong, of every decline against none [G, K]."""
    if not np.all((accuracy > 0) & (accuracy < 1)):
        raise ValueError(f"an accuracy of {accuracy} is not strictly within 0 and 1")
    p = accuracy[:, None]
    lower = special.expit(special.logit(p) - np.log(_MORE_ERRORS))
    return np.log(lower / p), np.log((1 - lower) / (1 - p))
