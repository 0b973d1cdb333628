"""How soon labels confirm that a group got worse, where drift aims a share of them and where it does not.

A label comes after every so many predictions, and says what a fresh item of its group truly is. Beliefs under
the learned prior are fitted anew before the labels of every round, to all that there are and to traffic by
now, which fades as in the service; so falling scores alone make a group seem worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from benchmarks.studies.inputs_items import Change, Items
from benchmarks.studies.inputs_watched import CHANGED, CHANGING, DRIFT, HEALTHY, ROUND, WINDOW, Watched
from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.suspected_groups import Aim
from service.statistics import beta as betas
from service.statistics.beliefs import AccuracyBeliefs, Outcomes
from service.statistics.curves import LearnedCurve
from service.statistics.drift import drift_label_shares
from service.statistics.e_processes import discoveries, log_e_below
from service.statistics.laplace import Cells, Modes
from service.statistics.policies import POLICIES, Situation
from service.statistics.questions import Question
from service.statistics.tasks import TASKS

_TRAFFIC_HALF_LIFE = 7 * WINDOW
"""Predictions after which one counts half: as many windows as the service's half-life has days."""

_NEAR_END = 1e-6


@dataclass(frozen=True)
class Way:
    """Who is labelled next.

    Attributes:
        name: as it is shown.
        policy: of the assessment.
        task: of the assessment; its metric is accuracy.
        label_share: that drift aims, while a group has drifted.
    """

    name: str
    policy: str
    task: str
    label_share: float

    def __str__(self) -> str:
        return self.name


_ASKED: Final = (
    ("evenly", "random", "estimation"),
    ("estimation", "thompson", "estimation"),
    ("least accurate", "thompson", "identification"),
)

WAYS: Final = tuple(
    Way(f"{name}{results}", policy, task, label_share)
    for name, policy, task in _ASKED
    for results, label_share in (("", 0.0), (", aimed", DRIFT.label_share))
)


@dataclass(frozen=True)
class Labelled:
    """What the labels of some runs tell, at every look [T].

    Attributes:
        confirmed: whether there is evidence that a group is less accurate than it was, by e-BH [T, R, G].
        below_expected: probability that a group is less accurate than its scores promise [T, R, G].
        labels: of every group so far [T, R, G].
    """

    confirmed: Flags
    below_expected: Floats
    labels: Floats

    @classmethod
    def joined(cls, parts: Sequence[Labelled]) -> Labelled:
        """Runs of several batches."""
        return cls(*(np.concatenate([vars(part)[name] for part in parts], axis=1) for name in vars(parts[0])))


@dataclass(frozen=True)
class LabelStream:
    """How labels of several runs come and what they are held against.

    Attributes:
        items: that traffic is of.
        change: what becomes of them in group `CHANGING`.
        groups: how many there are, G.
        predictions: of all groups, from one label to the next.
        alpha: expected share of false ones among groups of which evidence tells.
    """

    items: Items
    change: Change
    groups: int
    predictions: int
    alpha: float

    def count(self, rounds: int) -> int:
        """Labels that have come after so many rounds."""
        return rounds * ROUND // self.predictions

    def ask(self, way: Way, watched: Sequence[Watched], seed: tuple[int, ...]) -> Labelled:
        """All runs in one way, on the streams that were watched [R]; answers are drawn alike in all ways."""
        answers, chances = (np.random.default_rng((*seed, part)) for part in range(2))
        asked = _Asked(self, way, len(watched), answers, chances)
        looks = [
            asked.round(number, [each.drift_scores[number] for each in watched])
            for number in range(HEALTHY + CHANGED)
        ]
        correct, labels, mean, variance = (np.stack(column) for column in zip(*looks, strict=True))
        expected = np.stack([each.expected for each in watched], axis=1)
        # By the Beta of the same moments, as in the service.
        below = special.betainc(*betas.matching(mean, variance), expected)
        return Labelled(self.confirmed(correct, labels - correct), np.asarray(below, np.float64), labels)

    def confirmed(self, correct: Floats, wrong: Floats) -> Flags:
        """Whether the evidence that a group got worse is taken for true, at every look by itself [T, R, G].

        Args:
            correct: labels so far that say that the prediction is right [T, R, G].
            wrong: those that say otherwise [T, R, G].
        """
        level = float(np.clip(self.items.accuracy(self.items.healthy), _NEAR_END, self._highest()))
        evidence = log_e_below(correct, wrong, np.full(correct.shape, level))
        flat = evidence.reshape(-1, self.groups)
        return np.stack([discoveries(each, self.alpha) for each in flat]).reshape(evidence.shape)

    def _highest(self) -> float:
        """The accuracy where no item is wrong: half of one more could be."""
        return 1 - 0.5 / self.items.before

    def cells(self, number: int) -> Cells:
        """What traffic tells of the groups in a round, on average over runs."""
        fade = 2 ** (-ROUND / _TRAFFIC_HALF_LIFE)
        changed = (1 - fade ** max(number + 1 - HEALTHY, 0)) / (1 - fade ** (number + 1))
        healthy, change = self.items.healthy, self.change
        shares = np.tile(self.items.by_bin(healthy), (self.groups, 1))
        sums = np.tile(self.items.scores_by_bin(healthy), (self.groups, 1))
        for rows, after in ((shares, self.items.by_bin(change)), (sums, self.items.scores_by_bin(change))):
            rows[CHANGING] += changed * (after - rows[CHANGING])
        middles = np.tile((np.arange(self.items.bin_count) + 0.5) / self.items.bin_count, (self.groups, 1))
        scores = np.divide(sums, shares, out=middles, where=shares > 0)
        return Cells(shares, scores, np.full(self.groups, 1 / self.groups))


class _Asked:
    """Labels of some runs, round by round.

    Args:
        labels: how they come.
        way: who is asked.
        runs: how many runs R.
        answers: draws items, the same for all ways.
        chances: for the policy and the aim.
    """

    def __init__(
        self,
        labels: LabelStream,
        way: Way,
        runs: int,
        answers: np.random.Generator,
        chances: np.random.Generator,
    ) -> None:
        self._how, self._way, self._runs = labels, way, runs
        self._answers, self._chances = answers, chances
        self._policy = POLICIES[way.policy]()
        self._every, self._available = np.arange(runs), np.ones((runs, labels.groups), np.bool_)
        shape = runs, labels.groups, labels.items.bin_count
        self._labels, self._correct = np.zeros(shape), np.zeros(shape)
        self._modes: Modes | None = None
        self._beliefs: AccuracyBeliefs | None = None
        self._aims: list[Aim | None] = [None] * runs

    def round(self, number: int, drift_scores: Sequence[Floats]) -> tuple[Floats, Floats, Floats, Floats]:
        """Labels of a round, and then a look.

        Args:
            number: of the round.
            drift_scores: drift score of every group by the end of it [G], of every run.

        Returns:
            Right labels, all labels, and mean and variance of what is believed [R, G].
        """
        wanted, cells = self._how.count(number + 1) - self._how.count(number), self._how.cells(number)
        if wanted or self._beliefs is None:
            self._beliefs = self._believed(cells)
        beliefs = self._beliefs
        task = TASKS[self._way.task, "accuracy"](Question(cells=cells))
        weights = np.tile(cells.group_shares, (self._runs, 1))
        for _ in range(wanted):
            groups = self._policy.choose(task, Situation(beliefs, weights, self._available), self._chances)
            asked = self._aimed(groups[:, 0])
            outcomes = self._answered(asked, changed=number >= HEALTHY)
            self._labels[self._every, asked, outcomes.bins] += 1
            self._correct[self._every, asked, outcomes.bins] += outcomes.correct
            beliefs.observe(self._every, asked, outcomes)
        self._aims = [self._aim(scores) for scores in drift_scores]
        accuracy = beliefs.mixture
        return (
            self._correct.sum(axis=2),
            self._labels.sum(axis=2),
            accuracy.mean(),
            accuracy.variance(),
        )

    def _believed(self, cells: Cells) -> AccuracyBeliefs:
        fit = LearnedCurve().fit(cells, self._labels.copy(), self._correct.copy(), self._modes)
        self._modes = fit.modes
        return AccuracyBeliefs(fit.groups())

    def _aim(self, scores: Floats) -> Aim | None:
        shares = drift_label_shares(scores, scores > DRIFT.max_distance)
        return None if shares is None or not self._way.label_share else Aim(shares, self._way.label_share)

    def _aimed(self, groups: Indices) -> Indices:
        """Groups to be asked in every run [R], of which the aim replaces some that the policy named."""
        asked = groups.copy()
        for run, aim in enumerate(self._aims):
            if aim is not None:
                named = aim.groups(self._available[run], 1, self._chances)
                asked[run] = named[0] if named else asked[run]
        return asked

    def _answered(self, groups: Indices, *, changed: bool) -> Outcomes:
        """A label of a fresh item of a group in every run [R]."""
        items, change = self._how.items, self._how.change
        drawn = self._answers.integers(items.before, size=self._runs)
        others = self._answers.choice(len(items.scores), size=self._runs, p=change.weights)
        turned = self._answers.random(self._runs) < change.turned
        changing = (groups == CHANGING) & changed
        drawn = np.where(changing, others, drawn)
        correct = items.correct[drawn] & ~(changing & turned)
        return Outcomes(correct.astype(np.float64), items.bins[drawn], items.predicted[drawn])
