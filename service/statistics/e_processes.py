"""Evidence that stays honest however often one looks: e-processes, and what is concluded from many of them.

An e-process is 1 on average at the most, at whatever moment one stops to look, as long as what it speaks
against is true. So with a probability of 1 - alpha it never reaches 1 / alpha, in all the time there is
(Ville's inequality; Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 2021; Ramdas, Gruenwald, Vovk
and Shafer, Statistical Science 2023). Evidence is told as a logarithm, as it soon is huge.

Labels may be asked adaptively: which group is asked next may depend on everything that is known, as long as
the items of one group are drawn evenly, and their labels taken in any order that does not depend on what the
labels say.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_STRENGTH: Final = 36.0
"""As many labels the accuracy that is expected after a decline counts."""

_MORE_ERRORS: Final = 2.8
"""By so much the odds of an error are expected to grow in a decline: from 0.92 to 0.80."""

_MOST_FALLEN: Final = 0.12
"""And by no more the accuracy is expected to fall, where few points are many times the odds of an error."""

_EVEN_ARRIVALS: Final = 2.0
"""About so many of the first hypotheses have nearly the same weight."""

_ARRIVAL_DECAY: Final = 0.5

_JEFFREYS: Final = 0.5
_UNDERFLOWS: Final = 1e-200
_CONVERGED: Final = 1e-16
_MOST_TERMS: Final = 100_000
_BISECTIONS: Final = 40


def log_e_below(correct: Floats, wrong: Floats, accuracy: Floats) -> Floats:
    """Logarithm of the evidence that a group is less accurate than it should be.

    The likelihood ratio of a mixture of all lower accuracies, Beta(a, b) below the one in question, in closed
    form:

        E = B(a + s, b + f) I_p(a + s, b + f) / (B(a, b) I_p(a, b)) / (p^s (1 - p)^f)

    An e-process for "the accuracy is p or more": of each lower accuracy the likelihood ratio grows with the
    wrong ones, so it is 1 on average at p and less above (Waudby-Smith and Ramdas, JRSS B 2024, on mixtures;
    Robbins, Annals of Mathematical Statistics 1970).

    Args:
        correct: s, labels that say so, of any shape.
        wrong: f, those that say otherwise.
        accuracy: p, strictly within 0 and 1.

    Raises:
        ValueError: a count is negative, or an accuracy is not strictly within 0 and 1.
    """
    s, f, p = _checked(correct, wrong, accuracy)
    centre = np.maximum(special.expit(special.logit(p) - np.log(_MORE_ERRORS)), p - _MOST_FALLEN)
    a, b = _STRENGTH * centre, _STRENGTH * (1 - centre)
    return _log_integral(a + s, b + f, p) - _log_integral(a, b, p) - _log_power(s, f, p)


def log_e_is_not(correct: Floats, wrong: Floats, accuracy: Floats) -> Floats:
    """Logarithm of the evidence that the accuracy is another one, higher or lower.

    The likelihood ratio of Jeffreys' mixture of all accuracies (Robbins 1970).

    Args:
        correct: labels that say so, of any shape.
        wrong: those that say otherwise.
        accuracy: strictly within 0 and 1.

    Raises:
        ValueError: a count is negative, or an accuracy is not strictly within 0 and 1.
    """
    s, f, p = _checked(correct, wrong, accuracy)
    mixture = special.betaln(_JEFFREYS + s, _JEFFREYS + f) - special.betaln(_JEFFREYS, _JEFFREYS)
    return mixture - _log_power(s, f, p)


def confidence_sequence(correct: Floats, wrong: Floats, mass: Floats | float) -> tuple[Floats, Floats]:
    """Bounds that hold the accuracy at all times at once with a probability of `mass`.

    All accuracies against which there is less evidence than 1 / (1 - mass) (Howard et al. 2021).

    Args:
        correct: labels that say so, of any shape.
        wrong: those that say otherwise, of the same one.
        mass: strictly within 0 and 1, of that shape too or one for all.

    Returns:
        Lower and upper bound, in that shape.

    Raises:
        ValueError: a count is negative, or the mass is not strictly within 0 and 1.
    """
    if not np.all((np.asarray(mass) > 0) & (np.asarray(mass) < 1)):
        raise ValueError(f"a mass of {mass} is not strictly within 0 and 1")
    s, f = np.broadcast_arrays(np.asarray(correct, np.float64), np.asarray(wrong, np.float64))
    limit = -np.log1p(-np.asarray(mass))
    likeliest = np.divide(s, s + f, out=np.full(s.shape, 0.5), where=s + f > 0)
    # Both ends at once: it is the number of calls that takes time, where groups are few.
    kept = np.stack((likeliest, likeliest))
    refused = np.zeros(kept.shape)
    refused[1] = 1.0
    for _ in range(_BISECTIONS):
        middle = (refused + kept) / 2
        inside = (middle > 0) & (middle < 1)
        tried = np.where(inside, middle, 0.5)
        outside = (log_e_is_not(s, f, tried) >= limit) | ~inside
        refused, kept = np.where(outside, middle, refused), np.where(outside, kept, middle)
    return kept[0], kept[1]


def discoveries(log_evidence: Floats, false_share: float, log_weights: Floats | None = None) -> Flags:
    """Which of many e-values are taken for true, so that few of them are false: weighted e-BH.

    The expected share of false ones among those taken is `false_share` at the most, however the e-values
    depend on one another, and whenever one looks (Wang and Ramdas, JRSS B 2022, equation 3; the proof needs
    no more than that weight times e-value, summed over the hypotheses that are true, is 1 on average at the
    most). While nothing is there to be found, the probability that anything is ever taken is `false_share`
    at the most. That holds with hypotheses that come later too, if the weight of each is fixed when it
    comes, and all weights ever given sum to 1 at the most.

    Args:
        log_evidence: logarithms of the e-values [G]; NaN of what has none.
        false_share: alpha, strictly within 0 and 1.
        log_weights: logarithms of the weights, which sum to 1 at the most [G]; all equal if not given.

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
    """Logarithms of the weights of hypotheses that come one by one, in the order of their coming.

    The n-th has F(n - 1) - F(n), with F(n) = (1 + n / 2)^(-1/2). So however many come, all weights sum to 1
    at the most, and the n-th of G has nearly the share 1 / G that it would have if all were there from the
    start: 0.18, 0.018, 0.0019 and 0.00025 of the 1st, 10th, 50th and 200th.

    Args:
        numbers: counted from 1 [G].
    """
    before = -_ARRIVAL_DECAY * np.log1p((numbers - 1) / _EVEN_ARRIVALS)
    after = -_ARRIVAL_DECAY * np.log1p(numbers / _EVEN_ARRIVALS)
    return before + np.log(-np.expm1(after - before))


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
    """Logarithm of the integral of x^(alpha - 1) (1 - x)^(beta - 1) from 0 to `end`."""
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
