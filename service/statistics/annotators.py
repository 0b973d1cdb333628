"""The truth behind the answers of people who err: which predictions are correct, and how reliable people are.

An item's prediction is correct or not, with the accuracy of the item's stratum. Of an answer only counts
whether it is the predicted class, so that nothing is assumed of which classes people confuse. A person who
knows the answer gives it, and else guesses:

    P(person j is right about item i) = 1/K + (1 - 1/K) tanh(x_ij / 2),  x_ij = a_j exp(-d_i),

with the ability a_j of the person and the difficulty d_i of the item; with two classes that is the model of
Whitehill et al. (NIPS 2009). A person of negative ability is right less often than one who guesses.
Difficulties are normal, and higher by h on average where the prediction is wrong: items that fool the model
fool people too, so errors are not independent given the truth. A wrong answer about a wrong prediction is the
predicted class with probability k; if there are two classes, always.

Abilities have t4 priors, so that some people may be unlike all others. All is sampled by Markov chain Monte
Carlo; what all items share moves with correctness and difficulty integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices

_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
_PAIR: Final = 2
_TAIL: Final = 4.0  # degrees of freedom of the abilities' prior
_RARE: Final = 1e-6  # no answer is less probable: people slip
_ENDS: Final = 1e-6  # accuracies are at least so far from 0 and 1
_SIZES: Final = (0.3, 1.0, 4.0)  # of steps, in turn by chance, as posteriors are narrow or wide
_ADAPTED: Final = 20  # sweeps of the warm-up between two adaptations


@dataclass(frozen=True)
class Answers:
    """Answers [M] about items [N], sorted by item; every item has one or more."""

    items: Indices
    annotators: Indices
    agrees: Flags  # whether the answer is the predicted class
    strata: Indices  # of every item [N]; those of a stratum have one accuracy
    annotator_count: int
    classes: int


@dataclass(frozen=True)
class AnnotatorPrior:
    """What is expected before any answer: (mean, standard deviation) of normal priors."""

    ability: tuple[float, float] = (3.0, 1.0)  # of a person; 3 is right in 95% of items of mean difficulty
    harder: tuple[float, float] = (1.0, 1.0)  # h: how much more difficult wrongly predicted items are
    log_difficulty: tuple[float, float] = (-0.36, 0.7)  # log of the difficulties' standard deviation
    log_unlike: tuple[float, float] = (-0.36, 0.5)  # log of the scale of the abilities
    fooled: tuple[float, float] = (0.5, 1.2)  # logit of k, less that of equally frequent wrong classes


class TruthDraws(NamedTuple):
    """Draws [S] from the posterior."""

    accuracy: Floats  # of every stratum [S, strata]
    correct: Floats  # probability that a prediction is correct [N]
    reliability: Floats  # share of items about which a person is right [S, annotators]


def sample_truth(
    answers: Answers,
    rng: np.random.Generator,
    *,
    prior: AnnotatorPrior | None = None,
    sweeps: int = 1_200,
    warm_up: int = 400,
) -> TruthDraws:
    """Draws from the posterior, one of every other sweep after the warm-up.

    The accuracy of every stratum has a uniform prior.
    """
    chain = _Chain(answers, prior or AnnotatorPrior(), rng)
    accuracy, reliability, correct = [], [], np.zeros(len(answers.strata))
    for _ in range(warm_up):
        chain.sweep()
        chain.adapt()
    for sweep in range(sweeps - warm_up):
        chain.sweep()
        if sweep % 2 == 0:
            accuracy.append(chain.state.accuracy)
            reliability.append(chain.reliability())
            correct += chain.probability_correct()
    return TruthDraws(np.array(accuracy), correct / len(accuracy), np.array(reliability))


class _Shared(NamedTuple):
    """What all items share."""

    ability: float
    harder: float
    log_difficulty: float
    log_unlike: float
    fooled: float


@dataclass(frozen=True)
class _State:
    shared: _Shared
    abilities: Floats  # [annotators]
    accuracy: Floats  # [strata]


class _Likelihood(NamedTuple):
    """Log P(answers about an item, difficulty) if its prediction is wrong, and correct [N, points]."""

    wrong: Floats
    correct: Floats


@dataclass
class _Chain:
    """A Markov chain over what answers leave open; `sweep` moves it."""

    answers: Answers
    prior: AnnotatorPrior
    rng: np.random.Generator
    state: _State = field(init=False)

    def __post_init__(self) -> None:
        answers = self.answers
        self._strata = np.bincount(answers.strata)
        self._starts = np.searchsorted(answers.items, np.arange(len(answers.strata)))
        shared = _Shared(*(mean for mean, _ in self._priors))
        abilities = np.full(answers.annotator_count, shared.ability)
        self.state = _State(shared, abilities, np.full(len(self._strata), 0.8))
        # Of two classes nothing tells k, which is 1.
        self._moved = np.flatnonzero([True, True, True, True, answers.classes > _PAIR, True])
        self._visited: list[Floats] = []
        self._root: Floats | None = None
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
        correct, points = self._drawn_items()
        right = np.bincount(self.answers.strata, correct, len(self._strata))
        accuracy = self.rng.beta(1 + right, 1 + self._strata - right)
        self.state = replace(self.state, accuracy=np.clip(accuracy, _ENDS, 1 - _ENDS))
        self._move_abilities(correct, points)
        self._likelihood = self._of_items(self.state)

    def adapt(self) -> None:
        """Propose steps as recent states are spread, this one among them (Haario et al., Bernoulli 2001)."""
        self._visited.append(np.append(self.state.shared, special.logit(self.state.accuracy).mean()))
        if len(self._visited) % _ADAPTED:
            return
        recent = np.array(self._visited[len(self._visited) // 3 :])[:, self._moved]
        size = len(self._moved)
        spread = np.cov(recent.T) + 1e-4 * np.eye(size)
        self._root = np.asarray(2.38 * np.linalg.cholesky(spread / size), np.float64)

    def reliability(self) -> Floats:
        """Share of all items about which every person would be right [annotators]."""
        shared, accuracy = self.state.shared, self._strata @ self.state.accuracy / self._strata.sum()
        ease = np.exp(-np.exp(shared.log_difficulty) * _POINTS)
        found = np.zeros(len(self.state.abilities))
        for share, harder in ((accuracy, 0.0), (1 - accuracy, shared.harder)):
            knows = _right(self.state.abilities[:, None] * ease * np.exp(-harder), self.answers.classes)
            found += share * (knows @ np.exp(_LOG_WEIGHTS))
        return np.asarray(found, np.float64)

    def probability_correct(self) -> Floats:
        """That predictions are correct [N], given all else."""
        accuracy = self.state.accuracy[self.answers.strata]
        wrong, correct = map(_log_sum, self._likelihood)
        return np.asarray(special.expit(special.logit(accuracy) + correct - wrong), np.float64)

    def _of_items(self, state: _State) -> _Likelihood:
        shared, answers = state.shared, self.answers
        ability = state.abilities[answers.annotators][:, None]
        ease = np.exp(-np.exp(shared.log_difficulty) * _POINTS)
        logs = [
            self._log_likelihood(ability * ease * np.exp(-harder), is_correct, shared)
            for is_correct, harder in ((False, shared.harder), (True, 0.0))
        ]
        return _Likelihood(*(np.add.reduceat(each, self._starts, axis=0) + _LOG_WEIGHTS for each in logs))

    def _log_likelihood(self, knowledge: Floats, is_correct: bool | Flags, shared: _Shared) -> Floats:
        """Log P(answer), by x [M, ...] and whether the prediction is correct."""
        classes = self.answers.classes
        right = _right(knowledge, classes)
        # The logit of 1 / (K - 1) is -log(K - 2).
        fooled = special.expit(shared.fooled - np.log(classes - _PAIR)) if classes > _PAIR else 1.0
        agreeing = np.where(is_correct, right, fooled * (1 - right))
        agrees = self.answers.agrees.reshape(-1, *(1,) * (knowledge.ndim - 1))
        return np.asarray(np.log(np.maximum(np.where(agrees, agreeing, 1 - agreeing), _RARE)), np.float64)

    def _log_density(self, state: _State, likelihood: _Likelihood) -> float:
        accuracy = state.accuracy[self.answers.strata]
        wrong, correct = map(_log_sum, likelihood)
        items = np.logaddexp(np.log1p(-accuracy) + wrong, np.log(accuracy) + correct).sum()
        of_shared = sum(
            -0.5 * ((value - mean) / deviation) ** 2
            for value, (mean, deviation) in zip(state.shared, self._priors, strict=True)
        )
        return float(items + of_shared + self._log_prior(state.abilities, state.shared).sum())

    def _log_prior(self, abilities: Floats, shared: _Shared) -> Floats:
        deviations = (abilities - shared.ability) * np.exp(-shared.log_unlike)
        logs = -0.5 * (_TAIL + 1) * np.log1p(deviations**2 / _TAIL) - shared.log_unlike
        return np.asarray(logs, np.float64)

    def _move_shared(self, log_density: float) -> float:
        """A Metropolis step of what all items share; people and strata move along.

        The log density of the state is given, and that of the next one returned.
        """
        rng, state = self.rng, self.state
        step = np.zeros(len(_Shared._fields) + 1)
        if self._root is not None and rng.random() < 0.7:  # noqa: PLR2004 - the rest go along one axis
            step[self._moved] = self._root @ rng.normal(size=len(self._moved))
        else:
            step[rng.choice(self._moved)] = 0.5 * rng.normal() * rng.choice(_SIZES[:2])
        shared = _Shared(*(np.array(state.shared) + step[:-1]).tolist())
        stretch = shared.log_unlike - state.shared.log_unlike
        stretched = (state.abilities - state.shared.ability) * np.exp(stretch)
        logits = special.logit(state.accuracy) + step[-1]
        accuracy = np.clip(special.expit(logits), _ENDS, 1 - _ENDS)
        proposed = _State(shared, shared.ability + stretched, accuracy)
        likelihood = self._of_items(proposed) if step[:-1].any() else self._likelihood
        # Of the change of variables: abilities are stretched, accuracies move on the scale of logits.
        volume = len(stretched) * stretch + _log_slope(accuracy) - _log_slope(state.accuracy)
        of_proposed = self._log_density(proposed, likelihood)
        if np.log(rng.random()) >= of_proposed - log_density + volume:
            return log_density
        self.state, self._likelihood = proposed, likelihood
        return of_proposed

    def _drawn_items(self) -> tuple[Flags, Floats]:
        """Whether every prediction is correct, and the standardised difficulty of the item [N]."""
        rng = self.rng
        correct = rng.random(len(self.answers.strata)) < self.probability_correct()
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


def _log_sum(logs: Floats) -> Floats:
    """Log of the sum of exponentials of every row; several times as fast as scipy's."""
    highest = logs.max(axis=1)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)), np.float64)


def _log_slope(shares: Floats) -> float:
    """Sum of the log derivatives of expit."""
    return float((np.log(shares) + np.log1p(-shares)).sum())
