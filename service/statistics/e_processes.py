"""E-processes of accuracy and calibration, confidence sequences, and multiple testing with e-values.

An e-process has expectation at most 1 at every stopping time, as long as its null hypothesis is true. So with
probability 1 - alpha it never reaches 1 / alpha (Ville's inequality; Howard, Ramdas, McAuliffe and Sekhon,
Annals of Statistics 2021; Ramdas, Gruenwald, Vovk and Shafer, Statistical Science 2023). E-values are kept as
logarithms.

Labels may be requested adaptively: which group is asked next may depend on all data, as long as the items of
one group are drawn evenly, and their labels processed in an order that does not depend on their outcomes.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.ratios import ratio

_STRENGTH: Final = 36.0  # pseudo-labels of the accuracy that is expected after a decline
_MORE_ERRORS: Final = 2.8  # expected factor of the odds of an error in a decline: from 0.92 to 0.80
_MOST_FALLEN: Final = 0.12  # largest expected fall, where few points are many times the odds of an error
_EVEN_ARRIVALS: Final = 2.0  # about this many first hypotheses have nearly the same weight
_ARRIVAL_DECAY: Final = 0.5

_JEFFREYS: Final = 0.5
_UNDERFLOWS: Final = 1e-200
_CONVERGED: Final = 1e-16
_MOST_TERMS: Final = 100_000
_BISECTIONS: Final = 40
_OF_REFERENCE: Final = 0.2  # weight of the evidence against r
_NEAR_END: Final = 1e-9
_ANY_ACCURACY: Final[Floats] = np.array(0.5)

_OFFSETS: Final = (-1.0, -0.5, 0.0, 0.5)
_SLOPES: Final = (0.4, 0.7, 1.0, 1.5)
_UNCHANGED: Final = (0.0, 1.0)

_CORRECTIONS: Final[Floats] = np.array([each for each in product(_OFFSETS, _SLOPES) if each != _UNCHANGED])
"""Offsets and slopes of the logit [K, 2], equally probable; more of them are for scores that are too high."""

_SCORE_MARGIN: Final = 1e-3  # scores are clipped to be this far from 0 and 1: one error there is no proof


def log_e_below(correct: Floats, wrong: Floats, accuracy: Floats) -> Floats:
    """Log e-value against "the accuracy is p or more", from s correct and f wrong labels of any shape.

    The likelihood ratio of a mixture of all lower accuracies, Beta(a, b) truncated to below p:

        E = B(a + s, b + f) I_p(a + s, b + f) / (B(a, b) I_p(a, b)) / (p^s (1 - p)^f)

    It is an e-process: the likelihood ratio of each lower accuracy grows with wrong labels, so its mean is 1
    at p and less above (Waudby-Smith and Ramdas, JRSS B 2024, on mixtures; Robbins, Annals of Mathematical
    Statistics 1970).

    Raises:
        ValueError: a count is negative, or an accuracy is not strictly within 0 and 1.
    """
    s, f, p = _checked(correct, wrong, accuracy)
    return _of_lower(s, f, p, np.asarray(accuracy, np.float64))


def _of_lower(s: Floats, f: Floats, p: Floats, tried: Floats) -> Floats:
    """`log_e_below` of counts and accuracies of one shape; of one accuracy the mixture is integrated once."""
    centre = np.maximum(special.expit(special.logit(tried) - np.log(_MORE_ERRORS)), tried - _MOST_FALLEN)
    a, b = _STRENGTH * centre, _STRENGTH * (1 - centre)
    return _log_integral(a + s, b + f, p) - _log_integral(a, b, tried) - _log_power(s, f, p)


def log_e_is_not(correct: Floats, wrong: Floats, accuracy: Floats) -> Floats:
    """Log e-value against "the accuracy is p", from correct and wrong labels of any shape.

    The likelihood ratio of Jeffreys' mixture of all accuracies (Robbins 1970).

    Raises:
        ValueError: a count is negative, or an accuracy is not strictly within 0 and 1.
    """
    s, f, p = _checked(correct, wrong, accuracy)
    return _log_mixture(s, f) - _log_power(s, f, p)


def _log_mixture(s: Floats, f: Floats) -> Floats:
    """Log probability of the labels under Jeffreys' mixture of all accuracies."""
    return np.asarray(
        special.betaln(_JEFFREYS + s, _JEFFREYS + f) - special.betaln(_JEFFREYS, _JEFFREYS), np.float64
    )


def log_e_declined(
    correct: Floats, wrong: Floats, reference_correct: Floats, reference_wrong: Floats
) -> Floats:
    """Log e-value against "the accuracy is no lower than in the reference", itself known only by labels.

    Let r be the reference's true accuracy: one e-process tests r by the reference's labels, another tests
    "the accuracy now is r or more". A weighted mean of both is an e-process too, and the minimum of these
    means over all r is no more than the one at the true r: an e-process for "it is as accurate as the
    reference", whatever that is. It is valid while either sample grows; with a long reference it is nearly
    that against a known accuracy. Counts of correct and wrong labels, now and in the reference, may be of any
    shape.

    Raises:
        ValueError: a count is negative.
    """
    now = np.asarray(correct, np.float64), np.asarray(wrong, np.float64)
    then = np.asarray(reference_correct, np.float64), np.asarray(reference_wrong, np.float64)
    s, f, s0, f0 = np.broadcast_arrays(*now, *then)
    for counts in ((s, f), (s0, f0)):
        _checked(*counts, _ANY_ACCURACY)
    likeliest, mixture = ratio(s0, s0 + f0, _NEAR_END), _log_mixture(s0, f0)

    def weighted(reference: Floats) -> tuple[Floats, Floats]:
        """Log e-values against a reference accuracy, and against "the accuracy now is that or more"."""
        return (
            np.log(_OF_REFERENCE) + (mixture - _log_power(s0, f0, reference)),
            np.log1p(-_OF_REFERENCE) + _of_lower(s, f, reference, reference),
        )

    # Below the likeliest reference, the lower it is the more speaks against it, and the less for a decline.
    low, high = np.full(s.shape, _NEAR_END), np.clip(likeliest, _NEAR_END, 1 - _NEAR_END)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        against, decline = weighted(middle)
        too_low = against > decline
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    # Where the two cross, neither is more than the least mean, and their sum is no less: take the greater.
    return np.maximum(*weighted(low))


def confidence_sequence(correct: Floats, wrong: Floats, mass: Floats | float) -> tuple[Floats, Floats]:
    """Lower and upper bounds that cover the accuracy at all times at once with probability `mass`.

    All accuracies whose e-value is less than 1 / (1 - mass) (Howard et al. 2021). Counts of correct and wrong
    labels have one shape, that of the bounds; the mass has it too, or is one number.

    Raises:
        ValueError: a count is negative, or the mass is not strictly within 0 and 1.
    """
    if not np.all((np.asarray(mass) > 0) & (np.asarray(mass) < 1)):
        raise ValueError(f"a mass of {mass} is not strictly within 0 and 1")
    s, f = np.broadcast_arrays(np.asarray(correct, np.float64), np.asarray(wrong, np.float64))
    _checked(s, f, _ANY_ACCURACY)
    limit, mixture = -np.log1p(-np.asarray(mass)), _log_mixture(s, f)
    likeliest = ratio(s, s + f, 0.5)
    # Both ends at once: it is the number of calls that takes time, where groups are few.
    accepted = np.stack((likeliest, likeliest))
    rejected = np.zeros(accepted.shape)
    rejected[1] = 1.0
    for _ in range(_BISECTIONS):
        middle = (rejected + accepted) / 2
        inside = (middle > 0) & (middle < 1)
        tried = np.where(inside, middle, 0.5)
        outside = (mixture - _log_power(s, f, tried) >= limit) | ~inside
        rejected, accepted = np.where(outside, middle, rejected), np.where(outside, accepted, middle)
    return accepted[0], accepted[1]


def e_values(log_evidence: Floats | float) -> Floats:
    """E-values, which Prometheus and JSON must be able to hold: at most 1e300."""
    return np.asarray(special.exp10(np.minimum(np.asarray(log_evidence) / np.log(10), 300.0)), np.float64)


def discoveries(log_evidence: Floats, false_share: float, log_weights: Floats | None = None) -> Flags:
    """Null hypotheses that weighted e-BH rejects, which controls the false discovery rate.

    The rate is at most `false_share`, for any dependence of the e-values and at any time (Wang and Ramdas,
    JRSS B 2022, equation 3; the proof needs only that weight times e-value, summed over the true nulls, has
    expectation at most 1). If all nulls are true, it bounds the probability of ever rejecting any. That holds
    with hypotheses that arrive later too, if the weight of each is fixed on arrival, and all weights ever
    given sum to at most 1. Log e-values [G] are NaN where there is none; log weights [G] are equal if not
    given.

    Raises:
        ValueError: the share is not strictly within 0 and 1.
    """
    if not 0 < false_share < 1:
        raise ValueError(f"a false share of {false_share:g} is not strictly within 0 and 1")
    weights = np.full(len(log_evidence), -np.log(max(1, len(log_evidence))))
    if log_weights is not None:
        weights = log_weights
    weighted = np.where(np.isnan(log_evidence), -np.inf, log_evidence + weights)
    descending = np.sort(weighted)[::-1]
    ranks = np.arange(1, len(weighted) + 1)
    enough = np.flatnonzero(descending >= -np.log(false_share * ranks))
    least = descending[enough[-1]] if len(enough) else np.inf
    return weighted >= least


def log_arrival_weights(numbers: Indices) -> Floats:
    """Log weights of hypotheses that arrive one by one, by their numbers from 1 [G].

    The n-th has F(n - 1) - F(n), with F(n) = (1 + n / 2)^(-1/2), so all weights sum to at most 1. It is 0.18,
    0.018, 0.0019 and 0.00025 for the 1st, 10th, 50th and 200th: nearly the share 1 / G of G hypotheses.
    """
    before = -_ARRIVAL_DECAY * np.log1p((numbers - 1) / _EVEN_ARRIVALS)
    after = -_ARRIVAL_DECAY * np.log1p(numbers / _EVEN_ARRIVALS)
    return before + np.log(-np.expm1(after - before))


def log_gains(
    scores: Floats, correct: Flags, groups: Indices, group_count: int, unanswered: Flags | None = None
) -> Floats:
    """Log gains of bets against "every prediction is right with the probability that its score gives" [G, K].

    A bet on each label, at the odds that the model itself offers, is fair under this hypothesis; so the
    wealth of the bettor is a test martingale (Shafer, JRSS A 2021). Bets are those of scores corrected by a
    logistic curve, mixed over several corrections. Gains of further labels are added. The order of labels
    does not matter, as every correction always bets the same. Scores of the predicted classes, whether these
    are right, and groups are columns [n]; of those that are `unanswered` every bet gains the least that it
    could.

    Raises:
        ValueError: a score is not in [0, 1].
    """
    if not np.all((scores >= 0) & (scores <= 1)):
        raise ValueError("scores must be probabilities, in [0, 1]")
    clipped = np.clip(scores, _SCORE_MARGIN, 1 - _SCORE_MARGIN)
    logits = special.logit(clipped)
    gains = np.empty((group_count, len(_CORRECTIONS)))
    for number, (offset, slope) in enumerate(_CORRECTIONS):
        odds = offset + slope * logits
        # What is surer than the ends may be right more often: nobody may win by what was cut off.
        odds = np.where(scores > clipped, np.minimum(odds, logits), odds)
        odds = np.where(scores < clipped, np.maximum(odds, logits), odds)
        right = special.log_expit(odds) - np.log(clipped)
        wrong = special.log_expit(-odds) - np.log1p(-clipped)
        ratios = np.where(correct, right, wrong)
        if unanswered is not None:
            ratios = np.where(unanswered, np.minimum(right, wrong), ratios)
        gains[:, number] = np.bincount(groups, weights=ratios, minlength=group_count)
    return gains


def log_e_miscalibrated(gains: Floats) -> Floats:
    """Log e-value of every group [G], from the log gains of each bet [G, K]."""
    evidence: Floats = special.logsumexp(gains, axis=1) - np.log(len(_CORRECTIONS))
    return evidence


def _checked(correct: Floats, wrong: Floats, accuracy: Floats) -> tuple[Floats, Floats, Floats]:
    s, f, p = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (correct, wrong, accuracy)))
    if np.any(s < 0) or np.any(f < 0):
        raise ValueError("labels are counted from 0 on")
    if not np.all((p > 0) & (p < 1)):
        raise ValueError("an accuracy that is to be tried lies strictly within 0 and 1")
    return s, f, p


def _log_power(correct: Floats, wrong: Floats, accuracy: Floats) -> Floats:
    return correct * np.log(accuracy) + wrong * np.log1p(-accuracy)


def _log_integral(alpha: Floats, beta: Floats, end: Floats) -> Floats:
    """Log integral of x^(alpha - 1) (1 - x)^(beta - 1) from 0 to `end`."""
    a, b, x = np.atleast_1d(alpha, beta, end)
    part = special.betainc(a, b, x)
    tiny = part < _UNDERFLOWS
    found: Floats = special.betaln(a, b) + np.log(np.where(tiny, 1.0, part))
    if np.any(tiny):
        found[tiny] = _log_tail(a[tiny], b[tiny], x[tiny])
    return found.reshape(np.shape(end))


def _log_tail(alpha: Floats, beta: Floats, end: Floats) -> Floats:
    """The same far below the mean, by the series of 2F1(alpha + beta, 1; alpha + 1; end) (DLMF 8.17.8)."""
    term, total = np.ones_like(alpha), np.ones_like(alpha)
    for k in range(_MOST_TERMS):
        term = term * (alpha + beta + k) / (alpha + 1 + k) * end
        total = total + term
        if np.all(term < _CONVERGED * total):
            break
    return alpha * np.log(end) + beta * np.log1p(-end) - np.log(alpha) + np.log(total)
