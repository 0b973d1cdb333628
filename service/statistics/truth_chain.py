"""A Markov chain over what answers of people who err leave open: see `annotators.py` for the model.

What all items share moves with correctness and difficulty integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.annotator_prior import (
    LOG_WEIGHTS,
    POINTS,
    AnnotatorPrior,
    Shared,
    probability_right,
    share_right,
)
from service.statistics.rival_classes import CORRECT, NEVER, RIVAL, AnswerTable, Rivals, kinds_of_answers
from service.statistics.strata_accuracy import (
    Accuracies,
    AccuracyModel,
    ItemEvidence,
    UniformAccuracy,
)

_PAIR: Final = 2
_TAIL: Final = 4.0  # degrees of freedom of the abilities' prior
_RARE: Final = 1e-6  # no answer is less probable: people slip
_SIZES: Final = (0.3, 1.0, 4.0)  # of steps, in turn by chance, as posteriors are narrow or wide
_RIDGE: Final = 10.0  # of the regression of parts, as so many states
_ADAPTED: Final = 20  # sweeps of the warm-up between two adaptations


UNIFORM: Final = UniformAccuracy()


@dataclass(frozen=True)
class Answers:
    """Answers [M] about items [N], sorted by item; every item has one or more.

    Gold items come last: whether their predictions are correct is known. They are in no stratum.
    """

    items: Indices
    annotators: Indices
    agrees: Flags  # whether the answer is the predicted class
    strata: Indices  # of every item but gold items [N - G]; those of a stratum have one accuracy
    annotator_count: int
    classes: int
    accuracy: AccuracyModel = UNIFORM  # of the strata
    gold: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))  # whether they are correct [G]
    rivals: Rivals | None = None  # of the items but gold items; None with two classes


_STEP: Final = len(Shared._fields) + 1  # length of a step of what all share and of all accuracies


@dataclass(frozen=True)
class State:
    """Where a chain stands."""

    shared: Shared
    abilities: Floats  # [annotators]
    accuracies: Accuracies
    rivals: Floats = field(default_factory=lambda: np.zeros(0))  # share q of incorrect predictions [groups]


class _Likelihood(NamedTuple):
    """Log P(answers about an item) if its prediction is wrong, and correct [N]."""

    wrong: Floats
    correct: Floats
    # Log P(answers, difficulty) by the truth of items (`rival_classes`), given whether it is the prediction
    # [T, points, N]. Items are last, so that sums over the others are quick.
    truths: Floats


@dataclass
class TruthChain:
    """A Markov chain over what answers leave open; `sweep` moves it on from `start`."""

    answers: Answers
    prior: AnnotatorPrior
    rng: np.random.Generator
    start: State | None = None
    state: State = field(init=False)

    def __post_init__(self) -> None:
        answers = self.answers
        self._strata = np.bincount(answers.strata, minlength=answers.accuracy.strata_count)
        self._starts = np.searchsorted(answers.items, np.arange(len(answers.strata) + len(answers.gold)))
        shared = Shared(*(mean for mean, _ in self._priors))
        abilities = np.full(answers.annotator_count, shared.ability)
        accuracies = answers.accuracy.start(len(self._strata))
        shares = np.full(0 if answers.rivals is None else answers.rivals.group_count, 0.5)
        self.state = self.start or State(shared, abilities, accuracies, shares)
        self._kinds = kinds_of_answers(answers.items, answers.agrees, answers.rivals)
        # Answers of a person that are alike are equally probable, whatever they are about.
        alike, self._alike = np.unique(
            np.stack((answers.annotators, self._kinds)), axis=1, return_inverse=True
        )
        self._people_of_alike, self._kinds_of_alike = alike
        self._weigh_rivals()
        # Of two classes nothing tells k, which is 1.
        self._moved = np.flatnonzero([True, True, True, True, answers.classes > _PAIR, True])
        self._visited: list[Floats] = []
        self._root: Floats | None = None
        self._follow = np.zeros((len(answers.accuracy.parts(self.state.accuracies)), _STEP))
        self._likelihood = self._of_items(self.state)

    @property
    def _priors(self) -> tuple[tuple[float, float], ...]:
        prior = self.prior
        return prior.ability, prior.harder, prior.log_difficulty, prior.log_unlike, prior.fooled

    def sweep(self) -> None:
        """Move everything once."""
        log_density = self._log_density(self.state, self._likelihood)
        for _ in range(2):
            log_density = self._move_shared(log_density)
        answers = self.answers
        evidence = ItemEvidence.of(answers.strata, *self._of_strata(self._likelihood))
        moved = answers.accuracy.moved(self.state.accuracies, evidence, self.rng)
        self.state = replace(self.state, accuracies=moved)
        truth, points = self._drawn_items()
        if answers.rivals is not None:
            shares = answers.rivals.draw_shares(truth[: len(answers.strata)], self.rng)
            self.state = replace(self.state, rivals=shares)
            self._weigh_rivals()
        self._move_abilities(truth, points)
        self._likelihood = self._of_items(self.state)

    def adapt(self) -> None:
        """Propose steps as recent states are spread, this one among them (Haario et al., Bernoulli 2001).

        Parts of the accuracies go along by their regression on what all items share: where answers say little
        of who is wrong, a part's accuracy depends on how reliable people are, which could not move alone.
        """
        model, accuracies = self.answers.accuracy, self.state.accuracies
        level, parts = model.level(accuracies), model.parts(accuracies)
        self._visited.append(np.concatenate([self.state.shared, [level], parts]))
        if len(self._visited) % _ADAPTED:
            return
        recent, size = np.array(self._visited[len(self._visited) // 3 :]), len(self._moved)
        recent -= recent.mean(axis=0)
        leading, parts = recent[:, self._moved], recent[:, _STEP:]
        spread = leading.T @ leading / len(recent) + 1e-4 * np.eye(size)
        self._root = np.asarray(2.38 * np.linalg.cholesky(spread / size), np.float64)
        # Shrunk to 0 while states are few.
        ridge = leading.T @ leading + np.diag(np.maximum(np.diag(spread), 1e-3)) * _RIDGE
        self._follow[:, self._moved] = np.linalg.solve(ridge, leading.T @ parts).T

    def reliability(self) -> Floats:
        """Share of all items about which every person would be right [annotators]."""
        shared, accuracy = self.state.shared, self._strata @ self.state.accuracies.strata / self._strata.sum()
        correct, wrong = (
            share_right(self.state.abilities, shared.log_difficulty, harder, self.answers.classes)
            for harder in (0.0, shared.harder)
        )
        return np.asarray(accuracy * correct + (1 - accuracy) * wrong, np.float64)

    def probability_correct(self) -> Floats:
        """That predictions are correct [N], given all else."""
        accuracy = self.state.accuracies.strata[self.answers.strata]
        wrong, correct = self._of_strata(self._likelihood)
        found = special.expit(special.logit(accuracy) + correct - wrong)
        return np.append(found, self.answers.gold)

    def probability_of_truths(self) -> Floats:
        """Of rival, likely class and others, given all else and that predictions are incorrect [T - 1, N]."""
        truths = self._likelihood.truths[1:]
        found = np.exp(truths - truths.max(axis=(0, 1))).sum(axis=1)
        return np.asarray(found / found.sum(axis=0), np.float64)

    def _of_strata(self, likelihood: _Likelihood) -> tuple[Floats, Floats]:
        """Log P(answers) of items that are not gold, if the prediction is wrong, and correct [N - G]."""
        count = len(self.answers.strata)
        return likelihood.wrong[:count], likelihood.correct[:count]

    def _of_items(self, state: State) -> _Likelihood:
        shared, answers = state.shared, self.answers
        ability = state.abilities[self._people_of_alike]
        ease = np.exp(-np.exp(shared.log_difficulty) * POINTS)[:, None]
        table = AnswerTable.of(shared.fooled, answers.classes, has_rivals=answers.rivals is not None)
        rights = [
            probability_right(ability * ease * np.exp(-harder), answers.classes)
            for harder in (0.0, shared.harder)
        ]
        truths = []
        for truth, (if_right, if_wrong) in enumerate(zip(table.if_right, table.if_wrong, strict=True)):
            right = rights[truth != CORRECT]
            logs = _log_mixed(if_right[self._kinds_of_alike], if_wrong[self._kinds_of_alike], right)
            of_answers = np.take(logs, self._alike, axis=1)
            truths.append(np.add.reduceat(of_answers, self._starts, axis=1) + LOG_WEIGHTS[:, None])
        found = np.stack(truths)
        if answers.rivals is not None:
            count = len(answers.strata)
            found[:, :, :count] += self._rival_weights
            found[RIVAL + 1 :, :, count:] = np.log(NEVER)
        wrong = found[CORRECT + 1 :].reshape(-1, found.shape[2])
        return _Likelihood(_log_sum(wrong), _log_sum(found[CORRECT]), found)

    def _weigh_rivals(self) -> None:
        """Log P(truth) of every item by the shares of rivals, which rarely move: see `Rivals.log_weights`."""
        answers = self.answers
        if answers.rivals is not None:
            self._rival_weights = answers.rivals.log_weights(self.state.rivals, answers.classes)[:, None]

    def _log_density(self, state: State, likelihood: _Likelihood) -> float:
        accuracy, strata, gold = state.accuracies.strata, self.answers.strata, self.answers.gold
        wrong, correct = self._of_strata(likelihood)
        of_gold = (each[len(strata) :] for each in (likelihood.correct, likelihood.wrong))
        known = np.where(gold, *of_gold)
        if_wrong, if_correct = np.log1p(-accuracy)[strata] + wrong, np.log(accuracy)[strata] + correct
        items = np.logaddexp(if_wrong, if_correct).sum() + known.sum()
        of_shared = sum(
            -0.5 * ((value - mean) / deviation) ** 2
            for value, (mean, deviation) in zip(state.shared, self._priors, strict=True)
        )
        of_accuracy = self.answers.accuracy.log_prior(state.accuracies)
        return float(items + of_shared + of_accuracy + self._log_prior(state.abilities, state.shared).sum())

    def _log_prior(self, abilities: Floats, shared: Shared) -> Floats:
        deviations = (abilities - shared.ability) * np.exp(-shared.log_unlike)
        logs = -0.5 * (_TAIL + 1) * np.log1p(deviations**2 / _TAIL) - shared.log_unlike
        return np.asarray(logs, np.float64)

    def _move_shared(self, log_density: float) -> float:
        """A Metropolis step of what all items share; people and strata move along.

        The log density of the state is given, and that of the next one returned.
        """
        rng, state = self.rng, self.state
        step = np.zeros(_STEP)
        if self._root is not None and rng.random() < 0.7:  # noqa: PLR2004 - the rest go along one axis
            step[self._moved] = self._root @ rng.normal(size=len(self._moved))
        else:
            step[rng.choice(self._moved)] = 0.5 * rng.normal() * rng.choice(_SIZES[:2])
        shared = Shared(*(np.array(state.shared) + step[:-1]).tolist())
        stretch = shared.log_unlike - state.shared.log_unlike
        stretched = (state.abilities - state.shared.ability) * np.exp(stretch)
        accuracies, volume = self.answers.accuracy.shifted(
            state.accuracies, float(step[-1]), self._follow @ step
        )
        proposed = State(shared, shared.ability + stretched, accuracies, state.rivals)
        likelihood = self._of_items(proposed) if step[:-1].any() else self._likelihood
        volume += len(stretched) * stretch  # of the change of variables
        of_proposed = self._log_density(proposed, likelihood)
        if np.log(rng.random()) >= of_proposed - log_density + volume:
            return log_density
        self.state, self._likelihood = proposed, likelihood
        return of_proposed

    def _drawn_items(self) -> tuple[Indices, Floats]:
        """The truth of every item, and its standardised difficulty [N]."""
        rng, truths = self.rng, self._likelihood.truths
        correct = rng.random(len(self._starts)) < self.probability_correct()
        is_prediction = np.arange(len(truths)) == CORRECT
        logs = np.where((is_prediction[:, None] == correct)[:, None], truths, -np.inf)
        flat = logs.reshape(-1, len(correct))
        cumulative = np.exp(flat - flat.max(axis=0)).cumsum(axis=0)
        drawn = (cumulative < rng.random(len(correct)) * cumulative[-1]).sum(axis=0)
        return drawn // len(POINTS), POINTS[drawn % len(POINTS)]

    def _move_abilities(self, truth: Indices, points: Floats) -> None:
        """A Metropolis step of every person, given the items."""
        answers, shared, rng = self.answers, self.state.shared, self.rng
        of_answers = truth[answers.items]
        table = AnswerTable.of(shared.fooled, answers.classes, has_rivals=answers.rivals is not None)
        if_right, if_wrong = (each[of_answers, self._kinds] for each in (table.if_right, table.if_wrong))
        harder = np.where(of_answers == CORRECT, 0.0, shared.harder)
        ease = np.exp(-np.exp(shared.log_difficulty) * points[answers.items] - harder)

        def log_density(abilities: Floats) -> Floats:
            right = probability_right(abilities[answers.annotators] * ease, answers.classes)
            logs = _log_mixed(if_right, if_wrong, right)
            of_people = np.bincount(answers.annotators, logs, len(abilities))
            return np.asarray(of_people + self._log_prior(abilities, shared), np.float64)

        now = self.state.abilities
        proposed = now + rng.normal(size=len(now)) * rng.choice(_SIZES, len(now))
        taken = np.log(rng.random(len(now))) < log_density(proposed) - log_density(now)
        self.state = replace(self.state, abilities=np.where(taken, proposed, now))


def _log_mixed(if_right: Floats, if_wrong: Floats, right: Floats) -> Floats:
    """Log P(answer), by a row of an `AnswerTable`."""
    return np.asarray(np.log(np.maximum(if_right * right + if_wrong * (1 - right), _RARE)), np.float64)


def _log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of every column; several times as fast as scipy's."""
    highest = logs.max(axis=0)
    return np.asarray(highest + np.log(np.exp(logs - highest).sum(axis=0)), np.float64)
