"""How many labels random sampling would have needed: a replay of the recorded stream.

Random sampling gets labels at the times at which Credence's labels came, several at each, with the same
statistics. It knows when the weakest camera degraded, and discards that camera's labels from before. The
result is the fewest labels with which the weakest camera's interval is no wider than Credence's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from service.demo.configuration import SCORE_BINS
from service.demo.journal import Stream
from service.demo.world import CAMERAS, DEGRADED_CAMERA
from service.domain.arrays import Flags, Floats, Indices
from service.statistics.balance_heuristic import sums
from service.statistics.groups import CellTraffic, Labels, assess_grouping

MOST_TIMES_AS_MANY = 20  # the search ends at this multiple of Credence's labels
_INTERVAL = 0.95


@dataclass(frozen=True)
class Recording:
    """What is replayed; times are in seconds since the epoch."""

    stream: Stream  # all predictions
    answer_times: Floats  # when Credence's labels came [n]
    at: float  # time of the last estimates
    width: float  # of Credence's interval for the weakest camera
    half_life_seconds: float  # of traffic, and of an item's probability to be drawn
    degraded_at: float | None  # when the weakest camera degraded; None if it did not

    @property
    def most_labels(self) -> int:
        """Where the search ends: a multiple of Credence's labels, and within the stream."""
        return min(MOST_TIMES_AS_MANY * int((self.answer_times <= self.at).sum()), len(self.stream))


def random_labels_needed(recording: Recording, *, seeds: int) -> Iterator[int | None]:
    """Labels that random sampling needed, by seed; None where even the most were too few."""
    for seed in range(seeds):
        yield _labels_needed(recording, np.random.default_rng(seed))


def _labels_needed(recording: Recording, rng: np.random.Generator) -> int | None:
    most = recording.most_labels
    answered = recording.answer_times[recording.answer_times <= recording.at]
    if not len(answered) or not most:
        return None
    moments = rng.permutation(np.repeat(answered, MOST_TIMES_AS_MANY))[:most]
    items = draw_recent(
        recording.stream.times, moments, half_life_seconds=recording.half_life_seconds, rng=rng
    )
    outdated = _outdated(recording)[items]
    stream = recording.stream
    weights = np.exp2((stream.times - recording.at) / recording.half_life_seconds)
    population = Population.of(
        stream.cameras, stream.scores, stream.correct, weights=weights, group_count=len(CAMERAS)
    )
    weakest = CAMERAS.index(DEGRADED_CAMERA)
    return fewest_labels(population, items, ~outdated, group=weakest, width=recording.width)


@dataclass(frozen=True)
class Population:
    """Predictions that labels are drawn from, by group and score bin."""

    cells: Indices  # of every prediction: its group and score bin [n]
    correct: Flags  # whether the prediction is true [n]
    traffic: CellTraffic
    group_count: int

    @classmethod
    def of(
        cls, groups: Indices, scores: Floats, correct: Flags, *, weights: Floats, group_count: int
    ) -> Population:
        """From each prediction's group, score in [0, 1] and weight in the traffic [n]."""
        bins = np.minimum((scores * SCORE_BINS).astype(np.intp), SCORE_BINS - 1)
        cells: Indices = groups * SCORE_BINS + bins
        count = group_count * SCORE_BINS
        traffic = CellTraffic(sums(cells, weights, count), sums(cells, weights * scores, count))
        return cls(cells, correct, traffic, group_count)

    def width(self, labelled: Indices, group: int) -> float:
        """Width of the 95% interval of a group's accuracy, from the labels of predictions [m]."""
        beliefs = assess_grouping(
            cell_groups=np.repeat(np.arange(self.group_count), SCORE_BINS),
            cell_bins=np.tile(np.arange(SCORE_BINS), self.group_count),
            group_count=self.group_count,
            bin_count=SCORE_BINS,
            traffic=self.traffic,
            labels=Labels(
                cells=self.cells[labelled],
                correct=self.correct[labelled].astype(np.float64),
                weights=np.ones(len(labelled)),
                freshness=np.ones(len(labelled)),
                true_classes=np.full(len(labelled), -1),
            ),
            prior="learned",
        )
        lower, upper = beliefs.accuracy_interval(_INTERVAL)
        return float(upper[group] - lower[group])


def fewest_labels(
    population: Population, drawn: Indices, counts: Flags, *, group: int, width: float
) -> int | None:
    """The fewest labels with which a group's interval is no wider than this; None if all are too few.

    Labels come in the order in which predictions were drawn [m]; those that do not count are paid, but
    discarded [m].
    """

    def is_enough(number: int) -> bool:
        return population.width(drawn[:number][counts[:number]], group) <= width

    most = len(drawn)
    return bisect_left(range(1, most), True, key=is_enough) + 1 if is_enough(most) else None


def _outdated(recording: Recording) -> Flags:
    """Predictions that say nothing of now: those of the weakest camera before it degraded [n].

    Credence has to find out; random sampling knows it.
    """
    stream = recording.stream
    weakest = stream.cameras == CAMERAS.index(DEGRADED_CAMERA)
    since = -np.inf if recording.degraded_at is None else recording.degraded_at
    outdated: Flags = weakest & (stream.times < since)
    return outdated


def draw_recent(
    times: Floats, moments: Floats, *, half_life_seconds: float, rng: np.random.Generator
) -> Indices:
    """Position of an item drawn at each moment [m] from those before; each half-life halves its probability.

    `times` of the items ascend [n]; both are in seconds since the epoch.
    """
    decay = np.log(2) / half_life_seconds
    oldest = np.maximum(moments - times[0], 0.0)
    # The age is exponential, cut off at the beginning of the stream.
    ages = -np.log1p(-rng.random(len(moments)) * -np.expm1(-decay * oldest)) / decay
    nearest = np.clip(np.searchsorted(times, moments - ages, side="right") - 1, 0, None)
    first = np.searchsorted(times, times[nearest], side="left")
    behind = np.searchsorted(times, times[nearest], side="right")
    drawn: Indices = rng.integers(first, behind)
    return drawn
