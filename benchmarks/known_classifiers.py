"""Binary classifiers of which the truth is known: what intervals of their performance are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats, Indices
from service.monitoring.binary_performance import RECALLS, PerformanceSnapshot

KINDS = ("calibrated", "overconfident", "underconfident", "separated", "overlapping", "rare", "uneven")
MEASURES = ("precision", "recall", "f1", "false_positive_rate", "prevalence")

_TRUTH_ITEMS = 400_000
_USUAL_THRESHOLD = 0.5

_NEAR = 0.005
"""Where the precision is next to 1, a band that ends at 0.9999 does not mislead anybody."""

_LEAST, _MOST = 0.05, 0.95
"""Recalls between which the curve is looked at: beyond them few items decide."""


@dataclass(frozen=True)
class Items:
    """What a classifier says of some items: columns [n].

    Attributes:
        scores: of the positive class.
        positive: whether they truly are.
        regions: where they come from.
    """

    scores: Floats
    positive: Flags
    regions: Indices


@dataclass(frozen=True)
class Classifier:
    """Two classes that are normal along a line; scores are logistic in where an item lies.

    Attributes:
        prevalence: of the positive class.
        distance: of the classes' means.
        deviations: of negative and positive items.
        offset: of the scores' logits.
        slope: of these; 1, and no offset, is calibrated where the deviations are 1.
        shifts: of the logits, by region; the later the region, the rarer.
    """

    prevalence: float
    distance: float
    deviations: tuple[float, float]
    offset: float
    slope: float
    shifts: Floats

    @classmethod
    def of_kind(cls, kind: str, rng: np.random.Generator, *, regions: int = 1) -> Classifier:
        """One of `KINDS`, at random."""
        made = cls(
            prevalence=rng.uniform(0.05, 0.5),
            distance=rng.uniform(0.8, 4.0),
            deviations=(1.0, 1.0),
            offset=0.0,
            slope=1.0,
            shifts=np.zeros(1) if regions == 1 else rng.normal(0, 0.7, regions),
        )
        changes: Mapping[str, Mapping[str, Any]] = {
            "calibrated": {},
            "overconfident": {"slope": rng.uniform(2.0, 3.0)},
            "underconfident": {"slope": rng.uniform(0.3, 0.6)},
            "separated": {"distance": rng.uniform(3.0, 4.5)},
            "overlapping": {"distance": rng.uniform(0.5, 1.2)},
            "rare": {"prevalence": rng.uniform(0.01, 0.03), "distance": rng.uniform(1.5, 3.5)},
            "uneven": {
                "deviations": tuple(rng.uniform(0.6, 1.4, 2).tolist()),
                "offset": rng.normal(0, 0.5),
                "slope": float(np.exp(rng.normal(0, 0.4))),
            },
        }
        return replace(made, **changes[kind])

    def items(self, count: int, rng: np.random.Generator) -> Items:
        """Some of its traffic."""
        positive = rng.random(count) < self.prevalence
        snapshot = (
            rng.normal(0, np.asarray(self.deviations)[positive.astype(np.intp)]) + self.distance * positive
        )
        honest = self.distance * (snapshot - self.distance / 2) + special.logit(self.prevalence)
        shares = 1 / np.arange(1, len(self.shifts) + 1)
        regions = rng.choice(len(self.shifts), count, p=shares / shares.sum()).astype(np.intp)
        scores = special.expit(self.offset + self.slope * honest + self.shifts[regions])
        return Items(scores, positive, regions)


@dataclass(frozen=True)
class Truth:
    """How well a classifier does in the long run.

    Attributes:
        threshold: from which it calls positive: 0.5; lower, if that calls fewer so than are.
        measures: at the threshold, by name.
        curve: precision at `RECALLS`.
    """

    threshold: float
    measures: Mapping[str, float]
    curve: Floats

    @classmethod
    def of(cls, classifier: Classifier, rng: np.random.Generator) -> Truth:
        """By very many items."""
        items = classifier.items(_TRUTH_ITEMS, rng)
        positive = items.positive
        as_many = float(np.quantile(items.scores, 1 - classifier.prevalence))
        threshold = min(_USUAL_THRESHOLD, round(as_many, 3))
        called = items.scores >= threshold
        right = float(np.count_nonzero(called & positive))
        found = np.cumsum(positive[np.argsort(-items.scores)])
        at = np.searchsorted(found, RECALLS * found[-1])
        measures = {
            "precision": right / called.sum(),
            "recall": right / positive.sum(),
            "f1": 2 * right / (called.sum() + positive.sum()),
            "false_positive_rate": called[~positive].mean(),
            "prevalence": positive.mean(),
        }
        return cls(threshold, {name: float(value) for name, value in measures.items()}, found[at] / (at + 1))

    def held(self, snapshot: PerformanceSnapshot) -> dict[str, float]:
        """Which intervals hold it, 1 or 0; and `curve`, the share of recalls at which the band does."""
        held = {
            name: float(snapshot.measures[name].lower <= true <= snapshot.measures[name].upper)
            for name, true in self.measures.items()
        }
        inside = (snapshot.curve.lower - _NEAR <= self.curve) & (self.curve <= snapshot.curve.upper + _NEAR)
        return {**held, "curve": float(inside[(RECALLS >= _LEAST) & (RECALLS <= _MOST)].mean())}
