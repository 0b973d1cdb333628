"""How soon the drift of unlabelled traffic is flagged, on streams of predictions whose inputs change.

Traffic is looked at as the service does it (service/monitoring/traffic_windows.py), with predictions in
the place of hours: the first ones are the reference, those of a window are recent, and a look is made eight
times a window. What is compared, and what counts as drift, is by the same functions
(service/statistics/drift.py) and defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from benchmarks.studies.inputs_items import Change, Items
from service.config.model import DriftSettings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.traffic_marks import SLOTS_PER_WINDOW
from service.statistics.drift import MixDrift, drift_scores, expected_accuracy, mix_drift

DRIFT: Final = DriftSettings()
WINDOW: Final = DRIFT.reference_predictions
"""Predictions of the reference, and of a window."""

ROUND: Final = WINDOW // SLOTS_PER_WINDOW
"""Predictions from one look to the next."""

HEALTHY_WINDOWS: Final = 3
"""Windows before the change: the reference, and two others."""

HEALTHY: Final = HEALTHY_WINDOWS * SLOTS_PER_WINDOW
"""Looks before the change: of the reference, and of two windows."""

CHANGED: Final = 12 * SLOTS_PER_WINDOW
"""Looks from the change to the end."""

CHANGING: Final = 0
"""The group whose items change."""

MEASURES: Final = ("scores", "classes", "any")
"""What may tell a group's drift; the last one is what the service goes by."""

_MIXES = 3
"""Scores, predicted classes, and the attribute that groups differ by."""


@dataclass(frozen=True)
class Stream:
    """Traffic of groups of the same size, of which one changes.

    Attributes:
        items: that traffic is of.
        change: what becomes of them in group `CHANGING` after `HEALTHY` looks.
        groups: how many there are, G.
        seed: of all chance of one run.
    """

    items: Items
    change: Change
    groups: int
    seed: tuple[int, ...]

    @cached_property
    def comparisons(self) -> int:
        """As many as the service makes: of every mix, in groups, score bins, classes, and all traffic."""
        there = (np.unique(kinds).size for kinds in (self.items.bins, self.items.predicted))
        return _MIXES * (self.groups + sum(there) + 1)

    def traffic(self) -> tuple[Ints, Ints]:
        """Predictions of every round by group and score bin [T, G, B], and by predicted class [T, G, K]."""
        rng = np.random.default_rng(self.seed)
        items, rounds = self.items, HEALTHY + CHANGED
        groups = rng.integers(self.groups, size=(rounds, ROUND))
        drawn = rng.integers(items.before, size=(rounds, ROUND))
        changing = groups == CHANGING
        changing[:HEALTHY] = False
        drawn[changing] = rng.choice(
            len(items.scores), size=np.count_nonzero(changing), p=self.change.weights
        )
        place = np.arange(rounds)[:, None] * self.groups + groups
        bins, classes = (
            np.bincount((place * count + kinds[drawn]).ravel(), minlength=rounds * self.groups * count)
            for count, kinds in ((items.bin_count, items.bins), (items.classes, items.predicted))
        )
        return bins.reshape(rounds, self.groups, -1), classes.reshape(rounds, self.groups, -1)


@dataclass(frozen=True)
class Watched:
    """Evaluations of one stream; 0 before the end of the first window after the reference.

    Attributes:
        excess: distance of every group from its reference beyond noise, by measure [T, G].
        all_traffic: the same of all traffic together, by any mix [T].
        expected: accuracy expected from recent scores [T, G].
    """

    excess: dict[str, Floats]
    all_traffic: Floats
    expected: Floats

    @property
    def drift_scores(self) -> Floats:
        """By the mix with the largest distance [T, G]."""
        return self.excess["any"]

    def flagged(self, measure: str) -> Flags:
        """Whether a group has drifted by this measure [T, G]."""
        flagged: Flags = self.excess[measure] > DRIFT.max_distance
        return flagged


def watch(stream: Stream) -> Watched:
    """Evaluations of one stream [T]; there is no drift before a window is full."""
    bins, classes = stream.traffic()
    groups = np.broadcast_to(bins.sum(axis=2)[:, None], (len(bins), 1, stream.groups))
    by_bin, by_class = _compared(bins, stream.comparisons), _compared(classes, stream.comparisons)
    everything = [_compared(each.sum(axis=1, keepdims=True), stream.comparisons) for each in (bins, classes)]
    everything.append(_compared(groups.astype(np.int64), stream.comparisons))
    shape = bins.shape[:2]
    recent = _recent(bins).reshape(-1, bins.shape[2])
    return Watched(
        excess={
            "scores": _from_start(by_bin.excess, shape),
            "classes": _from_start(by_class.excess, shape),
            "any": _from_start(drift_scores([by_bin, by_class]), shape),
        },
        all_traffic=_from_start(drift_scores(everything), (len(bins), 1))[:, 0],
        expected=_from_start(expected_accuracy(recent, stream.items.bin_accuracies), shape),
    )


def _compared(counts: Ints, comparisons: int) -> MixDrift:
    """How far every window is from the reference; rows are its look and group.

    Args:
        counts: predictions of every round, by group and kind [T, G, K].
        comparisons: that are made at one look.
    """
    recent = _recent(counts)
    reference = np.broadcast_to(counts[:SLOTS_PER_WINDOW].sum(axis=0), recent.shape)
    kinds = counts.shape[2]
    return mix_drift(reference.reshape(-1, kinds), recent.reshape(-1, kinds), comparisons=comparisons)


def _recent(counts: Ints) -> Ints:
    """Of every round from the end of the first window after the reference on, what its window holds."""
    until = np.cumsum(counts, axis=0)
    recent: Ints = until[2 * SLOTS_PER_WINDOW - 1 :] - until[SLOTS_PER_WINDOW - 1 : -SLOTS_PER_WINDOW]
    return recent


def _from_start(found: Floats, shape: tuple[int, int]) -> Floats:
    """By round and group [T, G], 0 of rounds before the first comparison."""
    compared = found.reshape(-1, shape[1])
    return np.concatenate([np.zeros((shape[0] - len(compared), shape[1])), compared])
