"""How reliable the people and vendors are who label items of a model, where labels may be wrong (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Floats, Indices
from service.monitoring.label_quality import Ends, LabelQuality, Quality

if TYPE_CHECKING:
    from service.config.alerts import AlertSettings
    from service.config.model import ModelSettings
    from service.monitoring.annotator_watch import LearnedAnnotators


@dataclass(frozen=True)
class AnnotatorEstimate:
    """One person.

    Attributes:
        vendor: empty without vendors.
        labels: those that the estimate uses.
        lower: of the credible interval of the share of the model's items about which they are right.
        mean: posterior mean of the same.
        upper: upper end.
        below: posterior probability that it is below `alerts.min_reliability`; None without one.
    """

    vendor: str
    annotator: str
    labels: int
    lower: float
    mean: float
    upper: float
    below: float | None
    quality: Quality


@dataclass(frozen=True)
class VendorEstimate:
    """All people of a vendor.

    Attributes:
        vendor: empty for people without one.
        people: who gave labels.
        unreliable: of these, people who are probably below `alerts.min_reliability`; None without one.
        labels: those that the estimate uses.
        lower: of the credible interval of the share of the model's items about which its labels are right.
        mean: posterior mean of the same.
        upper: upper end.
        below: posterior probability that it is below `alerts.min_reliability`; None without one.
    """

    vendor: str
    people: int
    unreliable: int | None
    labels: int
    lower: float
    mean: float
    upper: float
    below: float | None
    quality: Quality


@dataclass(frozen=True)
class LabellingEstimates:
    """Who labels items of a model, and how well."""

    annotators: tuple[AnnotatorEstimate, ...]  # by their lower ends
    vendors: tuple[VendorEstimate, ...]  # likewise
    quality: LabelQuality


def labelling_estimates(
    learned: LearnedAnnotators | None, settings: ModelSettings
) -> LabellingEstimates | None:
    """Of all people with labels, and their vendors; None where labels are the truth."""
    if learned is None:
        return None
    truth, alerts = learned.truth, settings.alerts
    labels = truth.labels
    given = np.flatnonzero(labels)
    of_people = _Reliability(truth.reliability[:, given], settings.interval, alerts)
    annotators = tuple(
        AnnotatorEstimate(
            *truth.people[person],
            int(labels[person]),
            *of_people.ends(place),
            of_people.below(place),
            learned.quality.people[truth.people[person]],
        )
        for place, person in enumerate(given.tolist())
    )
    names = sorted({each.vendor for each in annotators})
    members = [np.array([each.vendor == name for each in annotators]).nonzero()[0] for name in names]
    draws = [
        np.average(of_people.draws[:, chosen], axis=1, weights=labels[given[chosen]]) for chosen in members
    ]
    of_vendors = _Reliability(np.stack(draws, axis=1), settings.interval, alerts)
    vendors = tuple(
        VendorEstimate(
            name,
            len(chosen),
            _unreliable(annotators, chosen, alerts),
            int(labels[given[chosen]].sum()),
            *of_vendors.ends(place),
            of_vendors.below(place),
            learned.quality.vendors[name],
        )
        for place, (name, chosen) in enumerate(zip(names, members, strict=True))
    )
    return LabellingEstimates(
        annotators=tuple(sorted(annotators, key=lambda each: each.lower)),
        vendors=tuple(sorted(vendors, key=lambda each: each.lower)),
        quality=learned.quality,
    )


class _Reliability:
    """Shares of items about which some are right, from joint draws [draws, n]."""

    def __init__(self, draws: Floats, interval: float, alerts: AlertSettings) -> None:
        tail = (1 - interval) / 2
        self.draws = draws
        self._limit = alerts.min_reliability
        self._lower, self._upper = np.quantile(draws, [tail, 1 - tail], axis=0)
        self._mean = draws.mean(axis=0)

    def ends(self, place: int) -> Ends:
        """Lower end, posterior mean and upper end."""
        return float(self._lower[place]), float(self._mean[place]), float(self._upper[place])

    def below(self, place: int) -> float | None:
        """Posterior probability of being below the limit; None without one."""
        return None if self._limit is None else float((self.draws[:, place] < self._limit).mean())


def _unreliable(
    annotators: tuple[AnnotatorEstimate, ...], chosen: Indices, alerts: AlertSettings
) -> int | None:
    if alerts.min_reliability is None:
        return None
    people = (annotators[place] for place in chosen.tolist() if annotators[place].labels >= alerts.min_labels)
    return len([each for each in people if (each.below or 0.0) >= alerts.confidence])
