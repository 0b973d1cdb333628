"""Active assessment as one would first write it: one run at a time, one label at a time.

Source: Ji, Logan, Smyth, Steyvers (AAAI 2021), Algorithm 1 and Table 1; its supplement, Algorithms 1 and 3.
The yardstick for replays of many runs at once: numpy draws for all groups in one call, scipy.stats takes
variances for all groups in one call, and nothing is slower than it needs to be for one run.

Groups are numbered from 0, as predicted classes are. A group's items are asked in random order and never
twice; groups without any left are passed over, and a run ends when none is left.

Run: python -m benchmarks.plain_loops [--seconds 1] [--budget 200] [--seed 0] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats

from service.domain.arrays import Flags, Floats, Ints
from service.replay.digits import digits_recordings
from service.replay.recording import Recording

Variance = Callable[[Floats, Floats], Floats]

BETA_STRENGTH = 2.0
"""Pseudo-labels N0 of the prior of an accuracy."""

DIRICHLET_STRENGTH = 1.0
"""Pseudo-labels N0 of the prior of a predicted class's true classes."""

REGION = 0.05
"""Difference of accuracies that does not matter."""

DRAWS = 10_000
"""Monte Carlo draws of the difference of two accuracies."""

_SCORE_MARGIN = 1e-3
"""Mean scores are kept this far from 0 and 1, where the informed Beta would not exist."""

_LEAST_PROBABILITY = 1e-7
"""Mean probabilities are kept above this: a Dirichlet's parameters are positive."""


@dataclass(frozen=True)
class Accuracies:
    """What is believed of accuracies at the end of a run.

    Attributes:
        alpha: of every group's Beta [G]; of the two [2], where two were compared.
        beta: likewise.
        items: what was labelled, in order [L].
    """

    alpha: Floats
    beta: Floats
    items: Ints


@dataclass(frozen=True)
class Confusions:
    """What is believed of a confusion matrix at the end of a run.

    Attributes:
        alpha: of the Dirichlet of every predicted class, over true classes [K, K].
        items: what was labelled, in order [L].
    """

    alpha: Floats
    items: Ints


class _Pool:
    """Unlabelled items by group.

    Attributes:
        exhausted: whether a group has none left [G].
    """

    def __init__(self, groups: Ints, count: int, rng: np.random.Generator) -> None:
        self._left: list[list[int]] = [
            rng.permutation(np.flatnonzero(groups == group)).tolist() for group in range(count)
        ]
        self.exhausted: Flags = np.array([not left for left in self._left])

    def take(self, group: int) -> int:
        """An item of the group, each as likely."""
        item = self._left[group].pop()
        self.exhausted[group] = not self._left[group]
        return item


def informed_prior(predicted: Ints, scores: Floats) -> tuple[Floats, Floats]:
    """Beta(2 s_g, 2 (1 - s_g)), s_g the mean score; uniform for groups without items.

    Args:
        predicted: group of every item [N].
        scores: of every item [N].

    Returns:
        Both parameters of every group [G].
    """
    sizes = np.bincount(predicted)
    means = np.full(len(sizes), 0.5)
    np.divide(np.bincount(predicted, weights=scores), sizes, out=means, where=sizes > 0)
    means = np.clip(means, _SCORE_MARGIN, 1 - _SCORE_MARGIN)
    return BETA_STRENGTH * means, BETA_STRENGTH * (1 - means)


def confusion_prior(predicted: Ints, probabilities: Floats) -> Floats:
    """Mean probabilities of every predicted class [K, K]; uniform for classes without items.

    Args:
        predicted: class of every item [N].
        probabilities: of every class, for every item [N, K].
    """
    classes = probabilities.shape[1]
    means = np.full((classes, classes), 1 / classes)
    for group in np.unique(predicted):
        means[group] = probabilities[predicted == group].mean(axis=0)
    return np.asarray(DIRICHLET_STRENGTH * np.maximum(means, _LEAST_PROBABILITY), np.float64)


def library_variance(alpha: Floats, beta: Floats) -> Floats:
    """Variance of Beta(alpha, beta), by scipy.stats; any shape."""
    return np.asarray(stats.beta.var(alpha, beta), np.float64)


def formula_variance(alpha: Floats, beta: Floats) -> Floats:
    """The same by its formula: several times faster on few groups, where calls cost more than sums."""
    total = alpha + beta
    return np.asarray(alpha * beta / (total**2 * (total + 1)), np.float64)


def library_dirichlet_variance(alpha: Floats) -> Floats:
    """Variances of the last axis [..., K], by scipy.stats, which takes one vector at a time."""
    rows = alpha.reshape(-1, alpha.shape[-1])
    return np.array([stats.dirichlet.var(row) for row in rows]).reshape(alpha.shape)


def dirichlet_variance(alpha: Floats) -> Floats:
    """Variances of the last axis [..., K], by their formula."""
    total = alpha.sum(axis=-1, keepdims=True)
    return np.asarray(alpha * (total - alpha) / (total**2 * (total + 1)), np.float64)


def estimate_accuracy(
    predicted: Ints,
    correct: Flags,
    scores: Floats,
    budget: int,
    rng: np.random.Generator,
    *,
    variance: Variance = library_variance,
) -> Accuracies:
    """Estimate the accuracy of every group by Thompson sampling.

    The reward is p_g (Var(theta_g) - E Var(theta_g given one more label)), the outcome ~ Bern(drawn theta_g).

    Args:
        predicted: group of every item [N].
        correct: whether its prediction is correct [N].
        scores: of the predictions [N].
        budget: most labels.
        rng: makes all draws.
        variance: of Betas.
    """
    alpha, beta = informed_prior(predicted, scores)
    pool = _Pool(predicted, len(alpha), rng)
    shares = np.bincount(predicted) / len(predicted)
    items: list[int] = []
    while len(items) < budget and not pool.exhausted.all():
        theta = rng.beta(alpha, beta)
        after = theta * variance(alpha + 1, beta) + (1 - theta) * variance(alpha, beta + 1)
        reward = shares * (variance(alpha, beta) - after)
        reward[pool.exhausted] = -np.inf
        group = int(reward.argmax())
        item = pool.take(group)
        _learn(alpha, beta, group, correct=bool(correct[item]))
        items.append(item)
    return Accuracies(alpha, beta, np.array(items, np.int64))


def least_accurate(
    predicted: Ints,
    correct: Flags,
    scores: Floats,
    budget: int,
    rng: np.random.Generator,
    *,
    top_m: int = 1,
) -> Accuracies:
    """Find the least accurate groups by Thompson sampling; several by multiple plays.

    At every step one label is asked of each of the `top_m` groups of lowest drawn accuracy.

    Args:
        predicted: group of every item [N].
        correct: whether its prediction is correct [N].
        scores: of the predictions [N].
        budget: most labels.
        rng: makes all draws.
        top_m: how many groups to find.
    """
    alpha, beta = informed_prior(predicted, scores)
    pool = _Pool(predicted, len(alpha), rng)
    items: list[int] = []
    while len(items) < budget and not pool.exhausted.all():
        theta = rng.beta(alpha, beta)
        theta[pool.exhausted] = np.inf
        plays = min(top_m, budget - len(items), int(np.count_nonzero(~pool.exhausted)))
        lowest = [int(theta.argmin())] if plays == 1 else theta.argsort()[:plays].tolist()
        for group in lowest:
            item = pool.take(group)
            _learn(alpha, beta, group, correct=bool(correct[item]))
            items.append(item)
    return Accuracies(alpha, beta, np.array(items, np.int64))


def estimate_confusion(
    predicted: Ints,
    labels: Ints,
    probabilities: Floats,
    budget: int,
    rng: np.random.Generator,
    *,
    variance: Callable[[Floats], Floats] = library_dirichlet_variance,
) -> Confusions:
    """Estimate p(true class j given predicted class k) by Thompson sampling.

    The reward is p_k sum_j (Var(theta_jk) - E Var(theta_jk given one more label)), the label ~ drawn theta_k.

    Args:
        predicted: class of every item [N].
        labels: true class of every item [N].
        probabilities: of every class, for every item [N, K].
        budget: most labels.
        rng: makes all draws.
        variance: of the classes, from Dirichlet parameters [..., K].
    """
    classes = probabilities.shape[1]
    alpha = confusion_prior(predicted, probabilities)
    pool = _Pool(predicted, classes, rng)
    shares = np.bincount(predicted, minlength=classes) / len(predicted)
    one_more = np.eye(classes)
    reward = np.empty(classes)
    items: list[int] = []
    while len(items) < budget and not pool.exhausted.all():
        for group in range(classes):
            theta = rng.dirichlet(alpha[group])
            after = theta @ variance(alpha[group] + one_more).sum(axis=1)
            reward[group] = shares[group] * (variance(alpha[group]).sum() - after)
        reward[pool.exhausted] = -np.inf
        group = int(reward.argmax())
        item = pool.take(group)
        alpha[group, labels[item]] += 1
        items.append(item)
    return Confusions(alpha, np.array(items, np.int64))


def compare_accuracy(
    predicted: Ints,
    correct: Flags,
    scores: Floats,
    budget: int,
    rng: np.random.Generator,
    *,
    pair: tuple[int, int],
    region: float = REGION,
    draws: int = DRAWS,
) -> Accuracies:
    """Say which of two groups is more accurate: greedy in the confidence expected after one more label.

    Args:
        predicted: group of every item [N].
        correct: whether its prediction is correct [N].
        scores: of the predictions [N].
        budget: most labels.
        rng: makes all draws.
        pair: the two groups.
        region: difference that does not matter.
        draws: per probability.
    """
    prior = informed_prior(predicted, scores)
    alpha, beta = prior[0][list(pair)], prior[1][list(pair)]
    groups = np.select([predicted == group for group in pair], [0, 1], default=-1)
    pool = _Pool(groups, 2, rng)
    items: list[int] = []
    while len(items) < budget and not pool.exhausted.all():
        theta = rng.beta(alpha, beta)
        reward = np.full(2, -np.inf)
        for place in np.flatnonzero(~pool.exhausted):
            one_more = np.eye(2)[place]
            right = regions(alpha + one_more, beta, rng, region=region, draws=draws).max()
            wrong = regions(alpha, beta + one_more, rng, region=region, draws=draws).max()
            reward[place] = theta[place] * right + (1 - theta[place]) * wrong
        # Once the verdict is certain whatever the next label, either group will do.
        chosen = int(rng.integers(2)) if reward[0] == reward[1] else int(reward.argmax())
        item = pool.take(chosen)
        _learn(alpha, beta, chosen, correct=bool(correct[item]))
        items.append(item)
    return Accuracies(alpha, beta, np.array(items, np.int64))


def regions(
    alpha: Floats, beta: Floats, rng: np.random.Generator, *, region: float = REGION, draws: int = DRAWS
) -> Floats:
    """Probabilities that theta_1 - theta_2 is below, within and above the region [3], by Monte Carlo.

    Args:
        alpha: of both Betas [2].
        beta: likewise.
        rng: makes all draws.
        region: difference that does not matter.
        draws: how many.
    """
    difference = rng.beta(alpha[0], beta[0], draws) - rng.beta(alpha[1], beta[1], draws)
    below, above = np.mean(difference < -region), np.mean(difference > region)
    return np.array([below, 1 - below - above, above])


def _learn(alpha: Floats, beta: Floats, group: int, *, correct: bool) -> None:
    if correct:
        alpha[group] += 1
    else:
        beta[group] += 1


Replay = Callable[[Recording, int, np.random.Generator], Accuracies | Confusions]
"""One run of a loop over a recording, with a budget."""


def _estimate_accuracy(recording: Recording, budget: int, rng: np.random.Generator) -> Accuracies:
    return estimate_accuracy(recording.predicted, recording.correct, recording.scores, budget, rng)


def _estimate_accuracy_by_formula(recording: Recording, budget: int, rng: np.random.Generator) -> Accuracies:
    return estimate_accuracy(
        recording.predicted, recording.correct, recording.scores, budget, rng, variance=formula_variance
    )


def _least_accurate(recording: Recording, budget: int, rng: np.random.Generator) -> Accuracies:
    return least_accurate(recording.predicted, recording.correct, recording.scores, budget, rng)


def _least_accurate_3(recording: Recording, budget: int, rng: np.random.Generator) -> Accuracies:
    return least_accurate(recording.predicted, recording.correct, recording.scores, budget, rng, top_m=3)


def _estimate_confusion(recording: Recording, budget: int, rng: np.random.Generator) -> Confusions:
    return estimate_confusion(recording.predicted, recording.labels, recording.probabilities, budget, rng)


def _estimate_confusion_by_formula(recording: Recording, budget: int, rng: np.random.Generator) -> Confusions:
    return estimate_confusion(
        recording.predicted,
        recording.labels,
        recording.probabilities,
        budget,
        rng,
        variance=dirichlet_variance,
    )


def _compare_accuracy(recording: Recording, budget: int, rng: np.random.Generator) -> Accuracies:
    return compare_accuracy(
        recording.predicted, recording.correct, recording.scores, budget, rng, pair=(0, 1)
    )


LOOPS: dict[str, Replay] = {
    "estimate_accuracy": _estimate_accuracy,
    "estimate_accuracy, formula": _estimate_accuracy_by_formula,
    "least_accurate": _least_accurate,
    "least_accurate, top 3": _least_accurate_3,
    "estimate_confusion": _estimate_confusion,
    "estimate_confusion, formula": _estimate_confusion_by_formula,
    "compare_accuracy": _compare_accuracy,
}
"""What is measured, by name; `formula` takes variances by their formulas, without scipy.stats."""


@dataclass(frozen=True)
class Measured:
    """How fast a loop replays a recording.

    Attributes:
        recording: its name.
        loop: its name.
        runs: how many.
        labels: of all runs.
        seconds: that they took.
        fastest: labels per second of the fastest run, which other work on the machine slowed least.
    """

    recording: str
    loop: str
    runs: int
    labels: int
    seconds: float
    fastest: float

    @property
    def labels_per_second(self) -> float:
        """Labels replayed in a second."""
        return self.labels / self.seconds

    @property
    def microseconds_per_label(self) -> float:
        """Time that a label takes."""
        return self.seconds / self.labels * 1e6


def measure(recording: Recording, loop: str, *, budget: int, seconds: float, seed: int = 0) -> Measured:
    """Replay whole runs, one after the other, until the time is over; a short run before is not counted.

    Args:
        recording: what is replayed.
        loop: one of `LOOPS`.
        budget: labels of a run.
        seconds: least time that all runs take.
        seed: of all draws.
    """
    replay, rng = LOOPS[loop], np.random.default_rng(seed)
    replay(recording, min(budget, 5), rng)
    runs, labels, elapsed, fastest = 0, 0, 0.0, 0.0
    while elapsed < seconds:
        start = time.perf_counter()
        replayed = len(replay(recording, budget, rng).items)
        taken = time.perf_counter() - start
        runs, labels, elapsed = runs + 1, labels + replayed, elapsed + taken
        fastest = max(fastest, replayed / taken)
    return Measured(recording.name, loop, runs, labels, elapsed, fastest)


def _table(measured: Sequence[Measured]) -> str:
    names = f"{'recording':<20} {'loop':<27} {'runs':>6} {'labels':>9}"
    lines = [f"{names} {'labels/s':>10} {'us/label':>10} {'fastest/s':>10}"]
    lines += [
        f"{row.recording:<20} {row.loop:<27} {row.runs:>6,} {row.labels:>9,} "
        f"{row.labels_per_second:>10,.0f} {row.microseconds_per_label:>10,.1f} {row.fastest:>10,.0f}"
        for row in measured
    ]
    return "\n".join(lines)


def _json(measured: Sequence[Measured]) -> str:
    return json.dumps(
        [
            asdict(row)
            | {
                "labels_per_second": row.labels_per_second,
                "microseconds_per_label": row.microseconds_per_label,
            }
            for row in measured
        ],
        indent=2,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure how fast plain loops replay labels.")
    parser.add_argument("--seconds", type=_positive, default=1.0, help="least time per loop and recording")
    parser.add_argument("--budget", type=_whole, default=200, help="labels of a run")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    return parser.parse_args()


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("it must be above 0")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def main() -> None:
    """Measure every loop on both recordings of digits, and print."""
    arguments = _arguments()
    measured = [
        measure(recording, loop, budget=arguments.budget, seconds=arguments.seconds, seed=arguments.seed)
        for recording in digits_recordings()
        for loop in LOOPS
    ]
    print((_json if arguments.json else _table)(measured))


if __name__ == "__main__":
    main()
