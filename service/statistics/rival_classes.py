"""Which class is the true one if the predicted class is not: that of another classifier, or another one.

Of an incorrect prediction any other class may be true. One is singled out, its rival: what another classifier
predicts, or the positive class of an ensemble. In a group of items it is true with a probability q, and all
others with (1 - q) / (K - 2) each. So the truth of an item is its prediction, its rival, the class that most
of its other answers are (`LIKELY`), or one that no answer is (`UNSEEN`), and an answer is right, or wrong and
one of the classes that are not true (Dawid and Skene, Applied Statistics 1979, with one parameter for the
errors of everybody):

- of an incorrect prediction, the predicted class with probability k, and else any other alike;
- of a correct one, the rival with the same probability, and else any other alike: what misleads one
  classifier, or the other one, misleads people.

So answers of a class that nobody predicts say how often people err. If there are answers of several classes
that nobody predicts about one item, all but the most frequent one are taken to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

CORRECT, RIVAL, LIKELY, UNSEEN = range(4)
"""What the truth of an item may be. An answer is one of these, too."""

_UNLIKE: Final = 4  # an answer that is not the predicted class, about an item without a rival
_PSEUDO_ITEMS: Final = 2.0  # of the prior of a group's share
_MEANS: Final = (np.arange(20) + 0.5) / 20  # of these priors, equally probable
_PRIORS: Final = (_PSEUDO_ITEMS * _MEANS[:, None], _PSEUDO_ITEMS * (1 - _MEANS[:, None]))
_NORMS: Final = special.betaln(*_PRIORS)
NEVER: Final = 1e-100  # a probability instead of 0
_LEAST: Final = 1e-6  # of shares, from 0 and 1


@dataclass(frozen=True)
class Rivals:
    """Items [N] with their rivals, and what answers [M] say of them."""

    has_rival: Flags  # [N]
    groups: Indices  # whose items have rivals that are true equally often [N]
    group_count: int
    answers: (
        Indices  # CORRECT, RIVAL, LIKELY or UNSEEN: which truth every answer is, of items with a rival [M]
    )
    likely: Indices  # the likely class, -1 without one [N]

    @classmethod
    def of(
        cls,
        items: Indices,
        classes: Indices,
        *,
        predicted: Indices,
        rivals: Indices,
        groups: Indices,
        group_count: int,
    ) -> Self:
        """From the item and the class of every answer [M]; a rival is negative where there is none [N]."""
        is_rival = classes == rivals[items]
        is_other = ~is_rival & (classes != predicted[items])
        pairs, votes = np.unique(np.stack((items[is_other], classes[is_other])), axis=1, return_counts=True)
        likely = np.full(len(predicted), -1, np.intp)
        order = np.argsort(votes, kind="stable")  # the most frequent one is written last
        likely[pairs[0, order]] = pairs[1, order]
        is_likely = is_other & (classes == likely[items])
        kinds = np.select([is_rival, is_likely, is_other], [RIVAL, LIKELY, UNSEEN], CORRECT)
        return cls(rivals >= 0, groups, group_count, kinds.astype(np.intp), likely)

    def log_weights(self, shares: Floats, classes: int) -> Floats:
        """Log P(truth) if predictions are incorrect, by q of every group [T, N]; 0 of the prediction."""
        q, others = np.clip(shares, _LEAST, 1 - _LEAST)[self.groups], classes - 2
        weights = np.stack([np.ones(len(q)), q, (1 - q) / others, (1 - q) * (others - 1) / others])
        weights[:, ~self.has_rival] = np.array([1.0, 1.0, 0.0, 0.0])[:, None]
        return np.asarray(np.log(np.maximum(weights[: _truths(classes)], NEVER)), np.float64)

    def draw_shares(self, truth: Indices, rng: np.random.Generator) -> Floats:
        """Shares q of all groups [groups], given the truth of every item.

        q_g ~ Beta(c m, c (1 - m)) with as many pseudo-items c, and m uniform: it is drawn first, with shares
        integrated out (beta-binomial). To plug in the mean of all groups instead would leave 0 and 1
        absorbing where there are few of them.
        """
        which = self.has_rival & (truth != CORRECT)
        won = np.bincount(self.groups[which & (truth == RIVAL)], minlength=self.group_count)
        lost = np.bincount(self.groups[which], minlength=self.group_count) - won
        alpha, beta = _PRIORS
        logs = (special.betaln(alpha + won, beta + lost) - _NORMS).sum(axis=1)
        cumulative = np.exp(logs - logs.max()).cumsum()
        chosen = int((cumulative < rng.random() * cumulative[-1]).sum())
        return np.asarray(rng.beta(alpha[chosen] + won, beta[chosen] + lost), np.float64)


@dataclass(frozen=True)
class AnswerTable:
    """P(answer | truth) = a P(right) + b P(wrong), by truth [T] and what the answer is [5]."""

    if_right: Floats
    if_wrong: Floats

    @classmethod
    def of(cls, fooled: float, classes: int, *, has_rivals: bool) -> Self:
        """By the logit of k, less that of equally frequent wrong classes."""
        others = classes - 2
        k = float(special.expit(fooled - np.log(others))) if others else 1.0
        right, wrong = np.zeros((UNSEEN + 1, _UNLIKE + 1)), np.zeros((UNSEEN + 1, _UNLIKE + 1))
        if others:
            wrong[:, :_UNLIKE] = (1 - k) / others
        wrong[1:, CORRECT] = k
        wrong[CORRECT, RIVAL] = k
        for truth in (CORRECT, RIVAL, LIKELY):
            right[truth, truth], wrong[truth, truth] = 1.0, 0.0
        # Without a rival nothing is assumed of which classes are confused.
        wrong[CORRECT, _UNLIKE], wrong[RIVAL, _UNLIKE], right[RIVAL, _UNLIKE] = 1.0, 1 - k, 1.0
        count = _truths(classes) if has_rivals else RIVAL + 1
        return cls(right[:count], wrong[:count])


def _truths(classes: int) -> int:
    """How many truths are possible: with three classes there is no unseen one."""
    return UNSEEN + (classes > UNSEEN)


def kinds_of_answers(items: Indices, agrees: Flags, rivals: Rivals | None) -> Indices:
    """What every answer is, a column of an `AnswerTable` [M]; items without rivals may be behind others."""
    kinds = np.where(agrees, CORRECT, _UNLIKE)
    if rivals is not None:
        of_rivals = np.flatnonzero(np.append(rivals.has_rival, np.zeros(items.max() + 1, np.bool_))[items])
        kinds[of_rivals] = rivals.answers[of_rivals]
    return kinds
