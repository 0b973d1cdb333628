"""A Markov chain over what answers of people who err leave open: see `annotators.py` for the model.

What all items share moves with correctness and difficulty integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.statistics.strata_accuracy import (
    START_ACCURACY,
    Accuracies,
    AccuracyModel,
    ItemEvidence,
    UniformAccuracy,
)

_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
_PAIR: Final = 2
_TAIL: Final = 4.0  # degrees of freedom of the abilities' prior
_RARE: Final = 1e-6  # no answer is less probable: people slip
_SIZES: Final = (0.3, 1.0, 4.0)  # of steps, in turn by chance, as posteriors are narrow or wide
_ABILITIES: Final = (0.01, 1_000.0)  # the lowest and the highest that a prior may expect
_HALVINGS: Final = 50
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


@dataclass(frozen=True)
class AnnotatorPrior:
    """What is expected before any answer: (mean, standard deviation) of normal priors."""

    ability: tuple[float, float] = (3.0, 1.0)  # of a person; 3 is right in 95% of items of mean difficulty
    harder: tuple[float, float] = (1.0, 1.0)  # h: how much more difficult wrongly predicted items are
    log_difficulty: tuple[float, float] = (-0.36, 0.7)  # log of the difficulties' standard deviation
    log_unlike: tuple[float, float] = (-0.36, 0.5)  # log of the scale of the abilities
    fooled: tuple[float, float] = (0.5, 1.2)  # logit of k, less that of equally frequent wrong classes

    def expecting(self, reliability: float, classes: int) -> AnnotatorPrior:
        """The same of people who are expected to be right in this share of items, of all difficulties.

        Items are as difficult as this prior expects, and a usual share of their predictions is correct. By
        what factor an ability may differ stays the same.
        """
        low, high = _ABILITIES
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_low = self._share_right(middle, classes) < reliability
            low, high = (middle, high) if is_low else (low, middle)
        mean, deviation = self.ability
        return replace(self, ability=(high, deviation * high / mean))

    def _share_right(self, ability: float, classes: int) -> float:
        log_difficulty, harder = self.log_difficulty[0], self.harder[0]
        rights = [_share_right(np.array([ability]), log_difficulty, each, classes) for each in (0.0, harder)]
        return float(START_ACCURACY * rights[0][0] + (1 - START_ACCURACY) * rights[1][0])


class Shared(NamedTuple):
    """What all items share."""

    ability: float
    harder: float
    log_difficulty: float
    log_unlike: float
    fooled: float


_STEP: Final = len(Shared._fields) + 1  # length of a step of what all share and of all accuracies


@dataclass(frozen=True)
class State:
    """Where a chain stands."""

    shared: Shared
    abilities: Floats  # [annotators]
    accuracies: Accuracies


class _Likelihood(NamedTuple):
    """Log P(answers about an item, difficulty) if its prediction is wrong, and correct [N, points]."""

    wrong: Floats
    correct: Floats


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
        self.state = self.start or State(shared, abilities, accuracies)
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
        wrong, correct = (_log_sum(each[: len(answers.strata)]) for each in self._likelihood)
        evidence = ItemEvidence(answers.strata, wrong, correct)
        moved = answers.accuracy.moved(self.state.accuracies, evidence, self.rng)
        self.state = replace(self.state, accuracies=moved)
        self._move_abilities(*self._drawn_items())
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
            _share_right(self.state.abilities, shared.log_difficulty, harder, self.answers.classes)
            for harder in (0.0, shared.harder)
        )
        return np.asarray(accuracy * correct + (1 - accuracy) * wrong, np.float64)

    def probability_correct(self) -> Floats:
        """That predictions are correct [N], given all else."""
        accuracy = self.state.accuracies.strata[self.answers.strata]
        wrong, correct = (_log_sum(each[: len(accuracy)]) for each in self._likelihood)
        found = special.expit(special.logit(accuracy) + correct - wrong)
        return np.append(found, self.answers.gold)

    def _of_items(self, state: State) -> _Likelihood:
        shared, answers = state.shared, self.answers
        ability = state.abilities[answers.annotators][:, None]
        ease = np.exp(-np.exp(shared.log_difficulty) * _POINTS)
        logs = [
            self._log_likelihood(ability * ease * np.exp(-harder), is_correct, shared)
            for is_correct, harder in ((False, shared.harder), (True, 0.0))
        ]
        return _Likelihood(*(np.add.reduceat(each, self._starts, axis=0) + _LOG_WEIGHTS for each in logs))

    def _log_likelihood(self, knowledge: Floats, is_correct: bool | Flags, shared: Shared) -> Floats:
        """Log P(answer), by x [M, ...] and whether the prediction is correct."""
        classes = self.answers.classes
        right = _right(knowledge, classes)
        # The logit of 1 / (K - 1) is -log(K - 2).
        fooled = special.expit(shared.fooled - np.log(classes - _PAIR)) if classes > _PAIR else 1.0
        agreeing = np.where(is_correct, right, fooled * (1 - right))
        agrees = self.answers.agrees.reshape(-1, *(1,) * (knowledge.ndim - 1))
        return np.asarray(np.log(np.maximum(np.where(agrees, agreeing, 1 - agreeing), _RARE)), np.float64)

    def _log_density(self, state: State, likelihood: _Likelihood) -> float:
        accuracy, gold = state.accuracies.strata[self.answers.strata], self.answers.gold
        wrong, correct = map(_log_sum, likelihood)
        known = np.where(gold, correct[len(accuracy) :], wrong[len(accuracy) :])
        wrong, correct = wrong[: len(accuracy)], correct[: len(accuracy)]
        items = np.logaddexp(np.log1p(-accuracy) + wrong, np.log(accuracy) + correct).sum() + known.sum()
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
        accuracies, volume = self.answers.accuracy.shifted(state.accuracies, float(step[-1]), self._follow @ step)
        proposed = State(shared, shared.ability + stretched, accuracies)
        likelihood = self._of_items(proposed) if step[:-1].any() else self._likelihood
        volume += len(stretched) * stretch  # of the change of variables
        of_proposed = self._log_density(proposed, likelihood)
        if np.log(rng.random()) >= of_proposed - log_density + volume:
            return log_density
        self.state, self._likelihood = proposed, likelihood
        return of_proposed

    def _drawn_items(self) -> tuple[Flags, Floats]:
        """Whether every prediction is correct, and the standardised difficulty of the item [N]."""
        rng = self.rng
        correct = rng.random(len(self._starts)) < self.probability_correct()
        logs = np.where(correct[:, None], self._likelihood.correct, self._likelihood.wrong)
        cumulative = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
        drawn = rng.random((len(logs), 1)) * cumulative[:, -1:]
        return correct, _POINTS[(cumulative < drawn).sum(axis=1)]

    def _move_abilities(self, correct: Flags, points: Floats) -> None:
        """A Metropolis step of every person, given the items."""
        answers, shared, rng = self.answers, self.state.shared, self.rng
        is_correct = correct[answers.items]
        ease = np.exp(
            -np.exp(shared.log_difficulty) * points[answers.items] - np.where(is_correct, 0.0, shared.harder)
        )

        def log_density(abilities: Floats) -> Floats:
            logs = self._log_likelihood(abilities[answers.annotators] * ease, is_correct, shared)
            of_answers = np.bincount(answers.annotators, logs, len(abilities))
            return np.asarray(of_answers + self._log_prior(abilities, shared), np.float64)

        now = self.state.abilities
        proposed = now + rng.normal(size=len(now)) * rng.choice(_SIZES, len(now))
        taken = np.log(rng.random(len(now))) < log_density(proposed) - log_density(now)
        self.state = replace(self.state, abilities=np.where(taken, proposed, now))


def _right(knowledge: Floats, classes: int) -> Floats:
    """P(an answer is right), by x: 1 / K at 0, 1 far above and 0 far below."""
    known = np.tanh(0.5 * knowledge)
    return np.where(known > 0, 1 / classes + (1 - 1 / classes) * known, (1 + known) / classes)


def _share_right(abilities: Floats, log_difficulty: float, harder: float, classes: int) -> Floats:
    """Share of items of all difficulties about which people are right [annotators]."""
    ease = np.exp(-np.exp(log_difficulty) * _POINTS - harder)
    return np.asarray(_right(abilities[:, None] * ease, classes) @ np.exp(_LOG_WEIGHTS), np.float64)


def _log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of every row; several times as fast as scipy's."""
    highest = logs.max(axis=1)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)), np.float64)
