"""Which class is the true one if the predicted class is not: that of another classifier, or another one.

Of an incorrect prediction any other class may be true. One is singled out, its rival: what another classifier
predicts, or the positive class of an ensemble. In a group of items it is true with a probability q, and all
others with (1 - q) / (K - 2) each. A label that is not the predicted class is the true one with a probability
h, and else any other alike; so people who agree with one another inform about h (Dawid and Skene, Applied
Statistics 1979). Both are found by expectation maximisation; for imputations q is then drawn.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_STEPS: Final = 20
_HITS, _MISSES = 9.0, 1.0  # of the prior of h, as so many labels
_LEAST: Final = 1e-6  # of probabilities, from 0 and 1


def probability_of_rivals(
    items: Indices,
    classes: Indices,
    rng: np.random.Generator,
    *,
    predicted: Indices,
    rivals: Indices,
    incorrect: Flags,
    groups: Indices,
    class_count: int,
) -> Floats:
    """Probability that the true class of incorrect predictions is that of their rival, by a draw of q [N].

    Args:
        items: item of every label [M].
        classes: its class [M].
        rng: draws q of every group.
        predicted: class of every item [N].
        rivals: another one, negative where there is none [N].
        incorrect: whether the prediction is incorrect [N].
        groups: group of every item [N].
        class_count: number of classes, more than two.
    """
    count, others = len(predicted), class_count - 2
    is_rival = classes == rivals[items]
    is_other = ~is_rival & (classes != predicted[items])
    (of, _), places = np.unique(np.stack((items[is_other], classes[is_other])), axis=1, return_inverse=True)
    own, votes = np.bincount(items[is_rival], minlength=count), np.bincount(places.ravel())
    # Labels may be of a class that the model has no more.
    without = np.maximum(others - np.bincount(of, minlength=count), 0)
    sought = (incorrect & (rivals >= 0)).astype(np.float64)
    labels = float(sought @ (own + np.bincount(items[is_other], minlength=count)))
    total, shares, hit = np.bincount(groups, sought), np.full(len(sought), 0.5), _HITS / (_HITS + _MISSES)
    for _ in range(_STEPS):
        support = np.log(hit * others / (1 - hit))
        likelihoods = np.exp(support * votes)
        against = np.maximum(np.bincount(of, likelihoods, count) + without, np.finfo(float).tiny)
        log_odds = support * own - np.log(against / others)
        won = sought * special.expit(log_odds + special.logit(shares))
        hits = won @ own + (sought - won) @ (np.bincount(of, likelihoods * votes, count) / against)
        hit = (hits + _HITS) / (labels + _HITS + _MISSES)
        of_groups = np.bincount(groups, won)
        # As if every group had one more item, like all of them.
        overall = (of_groups.sum() + 0.5) / (total.sum() + 1)
        shares = ((of_groups + overall) / (total + 1))[groups]
    drawn = rng.beta(of_groups + overall, np.maximum(total - of_groups, 0.0) + 1 - overall)[groups]
    return np.asarray(special.expit(log_odds + special.logit(np.clip(drawn, _LEAST, 1 - _LEAST))), np.float64)
