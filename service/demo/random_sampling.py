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
    cells = _cells(recording.stream)
    traffic = _traffic(recording, cells)

    def is_enough(count: int) -> bool:
        drawn = items[:count][~outdated[:count]]
        beliefs = assess_grouping(
            cell_groups=np.repeat(np.arange(len(CAMERAS)), SCORE_BINS),
            cell_bins=np.tile(np.arange(SCORE_BINS), len(CAMERAS)),
            group_count=len(CAMERAS),
            bin_count=SCORE_BINS,
            traffic=traffic,
            labels=Labels(
                cells=cells[drawn],
                correct=recording.stream.correct[drawn].astype(np.float64),
                weights=np.ones(len(drawn)),
                freshness=np.ones(len(drawn)),
                true_classes=np.full(len(drawn), -1),
            ),
            prior="learned",
        )
        lower, upper = beliefs.accuracy_interval(_INTERVAL)
        weakest = CAMERAS.index(DEGRADED_CAMERA)
        return bool(upper[weakest] - lower[weakest] <= recording.width)

    counts = range(1, most)
    return bisect_left(counts, True, key=is_enough) + 1 if is_enough(most) else None


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


def _cells(stream: Stream) -> Indices:
    """Cell of every prediction: its camera and score bin."""
    bins = np.minimum((stream.scores * SCORE_BINS).astype(np.intp), SCORE_BINS - 1)
    cells: Indices = stream.cameras * SCORE_BINS + bins
    return cells


def _traffic(recording: Recording, cells: Indices) -> CellTraffic:
    stream = recording.stream
    weights = np.exp2((stream.times - recording.at) / recording.half_life_seconds)
    count = len(CAMERAS) * SCORE_BINS
    return CellTraffic(sums(cells, weights, count), sums(cells, weights * stream.scores, count))
