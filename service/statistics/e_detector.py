"""Evidence that a group's accuracy declined at some label: an e-process against "it never declined".

At every label a bet begins on "from here on the accuracy is less than p", with a share of the stake that was
reserved for that label: the share of label j is F(j - 1) - F(j), with F(j) = (1 + j / 100)^(-1/2). The shares
sum to 1, so the unplaced stakes and the wealth of all bets together are an e-process: it ever reaches 1 /
alpha with probability at most alpha, as long as the accuracy is p or more (Ville's inequality). A bet on
label j costs ln(1 / share): the shares decrease slowly, so a late decline is detected nearly as soon as an
early one. Each bet is mixed over several declines, as the size of one is not known. (With a whole stake for
every label it would be the e-detector of Shin, Ramdas and Rinaldo, New England Journal of Statistics in Data
Science 2023: quicker, but a healthy group alarms again and again.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

# factors by which the odds of an error may have grown, equally probable
_MORE_ERRORS: Final[Floats] = np.array([1.6, 2.5, 4.0, 8.0])
_EVEN_LABELS: Final = 100.0  # about this many first labels have nearly the same share of the stake
_DECAY: Final = 0.5  # after n labels the unplaced share is of the order of n to minus this power


@dataclass(frozen=True)
class ChangePoint:
    """The number of labels before the most probable begin of a decline, and an interval of this number."""

    after: int
    earliest: int
    latest: int


def no_bets(group_count: int) -> Floats:
    """Log wealth of the bets of groups without a label yet, by decline [G, K]."""
    return np.full((group_count, len(_MORE_ERRORS)), -np.inf)


def advance_bets(
    log_sums: Floats, correct: Flags, groups: Indices, accuracy: Floats, labels: Indices
) -> Floats:
    """Log wealth of the bets of many groups after further labels, by decline [G, K].

    The recursion W' = (W + stake) L, for n labels at once: with S the product of their likelihood ratios it
    is S_n (W + the sum over j of stake_j / S_(j - 1)). `log_sums` is the wealth before [G, K], such as
    `no_bets`, after so many `labels` [G]. Outcomes are in their order within each group [n], groups ascend
    [n], and accuracies are reached or exceeded before a decline [G].

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
    staked = log_stakes(numbers.astype(np.float64))[:, None]
    begun = np.logaddexp.reduceat(start[rank] - before + staked, first, axis=0)
    product = total[np.append(first[1:], len(groups)) - 1] - start
    advanced[there] = product + np.logaddexp(advanced[there], begun)
    return advanced


def log_wealth_of_bets(log_sums: Floats, labels: Floats) -> Floats:
    """Log e-value of a decline [G]: all bets, mixed over declines [G, K], and the unplaced stake.

    `labels` is how many labels of every group the bets have seen [G].
    """
    mixed = special.logsumexp(log_sums, axis=1) - np.log(len(_MORE_ERRORS))
    found: Floats = np.logaddexp(mixed, _log_unstaked(labels))
    return found


def _log_unstaked(labels: Floats) -> Floats:
    """Log share of the stake that is unplaced after this many labels, of any shape."""
    return -_DECAY * np.log1p(labels / _EVEN_LABELS)


def log_stakes(labels: Floats) -> Floats:
    """Log share that is staked on the next label, after this many labels, of any shape."""
    left = _log_unstaked(labels)
    return left + np.log(-np.expm1(_log_unstaked(labels + 1) - left))


def change_point(correct: Flags, accuracy: float, mass: float) -> ChangePoint:
    """When a decline began, if there was one: by the likelihood of each begin, all equally probable a priori.

    Outcomes of labels are in their order [n]; the accuracy is reached or exceeded before a decline; the
    interval has probability `mass`.

    Raises:
        ValueError: there is no label, or the accuracy is not strictly within 0 and 1.
    """
    if not len(correct):
        raise ValueError("without a label no beginning is likelier than another")
    ratios = log_ratios(correct, accuracy)
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


def log_ratios(correct: Flags, accuracy: float) -> Floats:
    """Log likelihood ratio of every label, of every decline against none [n, K]."""
    right, wrong = _log_ratios_of_groups(np.array([accuracy]))
    return np.where(correct[:, None], right, wrong)


def _log_ratios_of_groups(accuracy: Floats) -> tuple[Floats, Floats]:
    """Log likelihood ratios of a correct and of a wrong label, of every decline against none [G, K]."""
    if not np.all((accuracy > 0) & (accuracy < 1)):
        raise ValueError(f"an accuracy of {accuracy} is not strictly within 0 and 1")
    p = accuracy[:, None]
    lower = special.expit(special.logit(p) - np.log(_MORE_ERRORS))
    return np.log(lower / p), np.log((1 - lower) / (1 - p))
