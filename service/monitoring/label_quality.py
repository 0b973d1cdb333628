"""How well people agree who label items of a model, and how fast they answer (pure)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from service.domain.arrays import Indices
from service.statistics.label_agreement import (
    Agreement,
    SharedLabels,
    agreement,
    inclusion_weights,
    krippendorff_alpha,
)

if TYPE_CHECKING:
    from service.monitoring.item_labels import Person
    from service.monitoring.label_truth import LabelledItems

Ends = tuple[float, float, float]
"""Lower end, estimate and upper end."""

_Key = TypeVar("_Key", bound=Hashable)

_PAIR: Final = 2


@dataclass(frozen=True)
class Quality:
    """Labels of one person, or of all people of a vendor.

    Attributes:
        agreement: probability that somebody else gives an item the same label; None without shared items.
        shared_items: items that it comes from.
        answer_seconds: median time from the first issue of a request to its label. It includes the time until
            somebody takes the request, and further attempts.
    """

    agreement: Ends | None
    shared_items: int
    answer_seconds: float


@dataclass(frozen=True)
class LabelQuality:
    """Labels of all people.

    Attributes:
        agreement: probability that two people give an item the same label, over all items; None where too few
            items have several labels.
        alpha: Krippendorff's alpha, likewise.
        shared_items: items that these come from.
        people: of everybody who gave a label.
        vendors: of every vendor; people without one have an empty one.
    """

    agreement: Ends | None
    alpha: Ends | None
    shared_items: int
    people: Mapping[Person, Quality]
    vendors: Mapping[str, Quality]


def label_quality(
    items: LabelledItems, people: Sequence[Person], *, least: int, mass: float, rng: np.random.Generator
) -> LabelQuality:
    """Agreement and speed of people, from at least one item.

    Only the labels that every item may get count for agreement: `least`, or the first two. Later ones are
    asked for where the first differ. Whether there is a second one depends on whether the first is the
    predicted class, so items are weighted to stand for all of those with the same answer to that.
    """
    shared, is_represented = _shared_labels(items, most=max(_PAIR, least))
    vendors = {vendor: number for number, vendor in enumerate(dict.fromkeys(vendor for vendor, _ in people))}
    of_vendors = np.array([vendors[vendor] for vendor, _ in people], np.intp)

    def agreed(groups: Indices, count: int) -> Agreement | None:
        return agreement(shared, groups, count, mass=mass, rng=rng) if is_represented else None

    everybody = agreed(np.zeros(len(people), np.intp), 1)
    return LabelQuality(
        agreement=_ends(everybody, 0),
        alpha=krippendorff_alpha(shared, mass=mass, rng=rng) if is_represented else None,
        shared_items=0 if everybody is None else int(everybody.items[0]),
        people=_qualities(people, items.people, items, agreed(np.arange(len(people)), len(people))),
        vendors=_qualities([*vendors], of_vendors[items.people], items, agreed(of_vendors, len(vendors))),
    )


def _shared_labels(items: LabelledItems, *, most: int) -> tuple[SharedLabels, bool]:
    """The first labels of items, and whether items with several represent all of them."""
    starts = np.searchsorted(items.items, np.arange(len(items.rows)))
    counts = np.bincount(items.items, minlength=len(items.rows))
    # A label of an item counts once, however many of its predictions it says something about.
    is_shared = items.original & (counts > 1)
    # Before any correction: that is what the second label was asked for.
    agreed = items.as_given[starts] == items.predicted
    strata = np.where(items.original, agreed, _PAIR)
    weights = inclusion_weights(strata, is_shared)
    place = np.arange(len(items.items)) - starts[items.items]
    kept = np.flatnonzero(is_shared[items.items] & (place < most))
    shared = SharedLabels(items.items[kept], items.people[kept], items.classes[kept], weights)
    answers = strata[items.original]
    is_represented = bool(is_shared.any()) and np.array_equal(
        np.unique(answers), np.unique(strata[is_shared])
    )
    return shared, is_represented


def _qualities(
    names: Sequence[_Key], codes: Indices, items: LabelledItems, agreed: Agreement | None
) -> dict[_Key, Quality]:
    """Of those who gave labels; `codes` are of the labels [M]."""
    order = np.argsort(codes, kind="stable")
    given, starts = np.unique(codes[order], return_index=True)
    delays = np.split(items.delays[order], starts[1:])
    return {
        names[code]: Quality(
            agreement=_ends(agreed, code),
            shared_items=0 if agreed is None else int(agreed.items[code]),
            answer_seconds=float(np.median(own)),
        )
        for code, own in zip(given.tolist(), delays, strict=True)
    }


def _ends(agreed: Agreement | None, place: int) -> Ends | None:
    if agreed is None or not agreed.items[place]:
        return None
    found = agreed.estimate
    return float(found.lower[place]), float(found.mean[place]), float(found.upper[place])
