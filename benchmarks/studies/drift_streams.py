"""How well ways of forgetting follow an accuracy that drifts: many streams of labels, one label at a time.

A stream is one group of a recording: items are drawn from it at random, again and again, and labelled. Then
the accuracy falls by so many points: so many of the labels that would say that the prediction is right are
turned around. What is believed is looked at after every few labels, and held against the accuracy of that
moment. Beliefs are Betas with Jeffreys' prior, of labels that the way of forgetting has weighted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.replay.pool import Pool
from service.replay.workers import Workers, batches
from service.statistics import beta as betas
from service.statistics.change_points import change_point_weights

HEALTHY: Final = 300
"""Labels before a drift."""

SHAPES: Final = ("abrupt", "ramp", "recurring")

DRIFTING: Final = 600
"""Labels from its beginning to the end of the stream."""

EVERY: Final = 10
"""Labels from one look to the next."""

FIRST: Final = 50
"""Labels before the first look."""

RAMP: Final = 200
"""Labels that a ramp takes."""

TURN: Final = 150
"""Labels after which a drift that comes back goes, or comes."""

NO_DRIFT: Final = "no drift"

CHANGE: Final = "change"
"""The way of forgetting that dates changes."""

LOOKS: Final = np.arange(FIRST, HEALTHY + DRIFTING + 1, EVERY)

_RUNS_AT_ONCE = 20
_JEFFREYS = 0.5


def _severity(shape: str) -> Floats:
    """What share of the drift is there at every label [HEALTHY + DRIFTING]."""
    since = np.arange(1, HEALTHY + DRIFTING + 1) - HEALTHY
    shapes: Mapping[str, Floats] = {
        "abrupt": np.ones(len(since)),
        "ramp": np.clip(since / RAMP, 0.0, 1.0),
        "recurring": ((since - 1) // TURN % 2 == 0).astype(np.float64),
        NO_DRIFT: np.zeros(len(since)),
    }
    return np.where(since > 0, shapes[shape], 0.0)


@dataclass(frozen=True)
class Scenario:
    """A drift.

    Attributes:
        shape: one of `SHAPES`, or `NO_DRIFT`.
        points: by so much the accuracy falls, in percentage points.
    """

    shape: str
    points: float = 0.0

    def __str__(self) -> str:
        return self.shape if self.shape == NO_DRIFT else f"{self.shape}, {self.points:g} points"


@dataclass(frozen=True)
class DriftStudy:
    """The question, asked of one recording.

    Attributes:
        pool: the items, in groups.
        runs: streams of every group.
        window: of so many labels the fixed window is.
        half_life: after so many labels one counts half.
        run_length: labels from one change to the next, of forgetting after changes.
        mass: probability inside intervals.
        seed: of all chance.
    """

    pool: Pool
    runs: int
    window: int
    half_life: float
    run_length: float
    mass: float
    seed: int

    @property
    def methods(self) -> dict[str, Callable[[Flags], tuple[Floats, Indices]]]:
        """By name, what each way of forgetting leaves of labels [S, n], of which it knows what they say.

        And of every stream, after how many labels it dates a change [S]; 0 where it tells none.
        """

        def change(right: Flags) -> tuple[Floats, Indices]:
            sizes = np.full(len(right), right.shape[1])
            found = change_point_weights(correct=right.ravel(), sizes=sizes, run_length=self.run_length)
            return found.factors.reshape(right.shape), found.before

        def aged(factors: Callable[[Floats], Floats]) -> Callable[[Flags], tuple[Floats, Indices]]:
            def leaves(right: Flags) -> tuple[Floats, Indices]:
                ages = np.arange(right.shape[1])[::-1].astype(np.float64)
                return np.broadcast_to(factors(ages), right.shape), np.zeros(len(right), np.intp)

            return leaves

        return {
            "none": aged(np.ones_like),
            f"last {self.window}": aged(lambda ages: (ages < self.window).astype(np.float64)),
            f"half-life {self.half_life:g}": aged(lambda ages: np.exp2(-ages / self.half_life)),
            CHANGE: change,
        }

    def batches(self) -> list[tuple[int, int]]:
        """The first run of every batch, and how many there are in it."""
        return batches(self.runs, _RUNS_AT_ONCE)

    def streams(self, scenario: Scenario, first: int, runs: int) -> tuple[Flags, Floats]:
        """Those of one batch, as `streams` makes them, the same whenever they are asked for."""
        key = (*str(scenario).encode(), first)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
        return streams(self.pool, scenario, runs, rng)

    def run(self, scenario: Scenario, workers: Workers, name: str = "") -> dict[str, Followed]:
        """All runs under one drift, by method."""
        arguments = [(self, scenario, first, runs) for first, runs in self.batches()]
        found = workers.each(run_batch, arguments, name, [runs for *_, runs in arguments])
        return {name: Followed.joined([each[name] for each in found]) for name in self.methods}


@dataclass(frozen=True)
class Followed:
    """What one method believed of streams, at every look.

    Attributes:
        truth: accuracy of the moment [S, LOOKS].
        healthy: accuracy before any drift [S].
        step: within which a value counts as the true one: half of what one item adds to accuracy [S].
        mean: what it was believed to be [S, LOOKS].
        lower: end of its interval [S, LOOKS].
        upper: likewise.
        labels: effective ones [S, LOOKS].
        before: labels before the change that it tells; 0 where it tells none [S, LOOKS].
    """

    truth: Floats
    healthy: Floats
    step: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    labels: Floats
    before: Floats

    @classmethod
    def joined(cls, parts: list[Followed]) -> Followed:
        """Streams of several batches."""
        return cls(*(np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])))

    def squared_error(self) -> Floats:
        """At every look, the mean over streams [LOOKS]."""
        error: Floats = ((self.mean - self.truth) ** 2).mean(axis=0)
        return error

    def held(self) -> Floats:
        """Share of streams whose interval holds the truth, at every look [LOOKS]."""
        low, high = self.truth - self.step[:, None], self.truth + self.step[:, None]
        held: Floats = ((self.lower <= high) & (low <= self.upper)).mean(axis=0)
        return held

    def noticed(self) -> Flags:
        """Whether the interval lies below the accuracy before any drift [S, LOOKS]."""
        noticed: Flags = self.upper < (self.healthy - self.step)[:, None]
        return noticed


def run_batch(study: DriftStudy, scenario: Scenario, first: int, runs: int) -> dict[str, Followed]:
    """Some runs of every group: a function of its arguments alone, whoever runs it."""
    right, truth = study.streams(scenario, first, runs)
    healthy, step = (np.tile(each, runs) for each in (study.pool.accuracy, 0.5 / study.pool.sizes))
    believed: dict[str, list[tuple[Floats, ...]]] = {name: [] for name in study.methods}
    for look in LOOKS.tolist():
        seen = right[:, :look]
        for name, leaves in study.methods.items():
            factors, before = leaves(seen)
            labels, said = factors.sum(axis=1), (factors * seen).sum(axis=1)
            alpha, beta = _JEFFREYS + said, _JEFFREYS + labels - said
            interval = betas.interval(alpha, beta, study.mass)
            believed[name].append((betas.mean(alpha, beta), *interval, labels, before.astype(np.float64)))
    at = truth[:, LOOKS - 1]
    return {
        name: Followed(
            at, healthy, step, *(np.stack(column, axis=1) for column in zip(*columns, strict=True))
        )
        for name, columns in believed.items()
    }


def streams(pool: Pool, scenario: Scenario, runs: int, rng: np.random.Generator) -> tuple[Flags, Floats]:
    """What labels say, and how accurate the group truly is, label by label [runs * G, labels].

    An accuracy that is less than the drift falls to 0.
    """
    severity = _severity(scenario.shape)
    shape = runs, len(severity)
    said, truths = [], []
    for group, accuracy in enumerate(pool.accuracy.tolist()):
        items = np.flatnonzero(pool.groups == group)
        right = pool.recording.correct[rng.choice(items, shape)]
        turned = severity * min(1.0, scenario.points / 100 / max(accuracy, 1e-12))
        said.append(right & (rng.random(shape) >= turned))
        truths.append(np.broadcast_to(accuracy * (1 - turned), shape))
    # Run by run, and in each group by group.
    return (
        np.stack(said, axis=1).reshape(-1, len(severity)),
        np.stack(truths, axis=1).reshape(-1, len(severity)),
    )
