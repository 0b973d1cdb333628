"""How well people agree who label items of a model, and how fast they answer (pure)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.statistics import beta as betas
from service.statistics.label_agreement import (
    Agreement,
    SharedLabels,
    agreement,
    inclusion_weights,
    krippendorff_alpha,
)

if TYPE_CHECKING:
    from service.monitoring.item_labels import Person
    from service.monitoring.label_truth import KnownItems, LabelledItems

Ends = tuple[float, float, float]
"""Lower end, estimate and upper end."""

_Key = TypeVar("_Key", bound=Hashable)

_PAIR: Final = 2
_JEFFREYS: Final = 0.5


@dataclass(frozen=True)
class Quality:
    """Labels of one person, or of all people of a vendor.

    Attributes:
        agreement: probability that somebody else gives an item the same label; None without shared items.
        shared_items: items that it comes from.
        answer_seconds: median time from the first issue of a request to its label. It includes the time until
            somebody takes the request, and further attempts.
        gold_labels: first labels about gold items.
        gold_wrong: share of these that are wrong; None without any.
    """

    agreement: Ends | None
    shared_items: int
    answer_seconds: float
    gold_labels: int = 0
    gold_wrong: Ends | None = None


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
    items: LabelledItems,
    people: Sequence[Person],
    *,
    least: int,
    mass: float,
    rng: np.random.Generator,
    gold: KnownItems | None = None,
) -> LabelQuality:
    """Agreement and speed of people, from at least one item, and how often they are wrong about gold items.

    Only the labels that every item may get count for agreement: `least`, or the first two. Later ones are
    asked for where the first differ. Whether there is a second one depends on whether the first is the
    predicted class, so items are weighted to stand for all of those with the same answer to that. Gold
    items have no part in agreement.
    """
    shared, is_represented = _shared_labels(items, most=max(_PAIR, least))
    if gold is not None:
        gold = gold.beside(people)
        people = gold.people
    vendors = {vendor: number for number, vendor in enumerate(dict.fromkeys(vendor for vendor, _ in people))}
    of_vendors = np.array([vendors[vendor] for vendor, _ in people], np.intp)

    def agreed(groups: Indices, count: int) -> Agreement | None:
        return agreement(shared, groups, count, mass=mass, rng=rng) if is_represented else None

    everybody = agreed(np.zeros(len(people), np.intp), 1)
    return LabelQuality(
        agreement=_ends(everybody, 0),
        alpha=krippendorff_alpha(shared, mass=mass, rng=rng) if is_represented else None,
        shared_items=0 if everybody is None else int(everybody.items[0]),
        people=_qualities(
            people,
            _Given.of(items, gold, np.arange(len(people))),
            agreed(np.arange(len(people)), len(people)),
            mass,
        ),
        vendors=_qualities(
            [*vendors], _Given.of(items, gold, of_vendors), agreed(of_vendors, len(vendors)), mass
        ),
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


class _Given(NamedTuple):
    """Labels, those of gold items included [M], by the code of who gave them."""

    codes: Indices
    delays: Floats  # seconds
    gold_codes: Indices  # of first labels about gold items [G]
    gold_wrong: Flags  # whether these are wrong [G]

    @classmethod
    def of(cls, items: LabelledItems, gold: KnownItems | None, codes: Indices) -> _Given:
        """With a code for every person."""
        own, nobody = codes[items.people], np.zeros(0, np.intp)
        if gold is None:
            return cls(own, items.delays, nobody, nobody.astype(np.bool_))
        of_gold = codes[gold.labelled.people]
        return cls(
            np.append(own, of_gold),
            np.append(items.delays, gold.labelled.delays),
            of_gold[gold.is_first],
            gold.is_wrong[gold.is_first],
        )


def _qualities(
    names: Sequence[_Key], labels: _Given, agreed: Agreement | None, mass: float
) -> dict[_Key, Quality]:
    """Of those who gave labels."""
    order = np.argsort(labels.codes, kind="stable")
    given, starts = np.unique(labels.codes[order], return_index=True)
    delays = np.split(labels.delays[order], starts[1:])
    gold = np.bincount(labels.gold_codes, minlength=len(names))
    wrong = np.bincount(labels.gold_codes, labels.gold_wrong, minlength=len(names))
    return {
        names[code]: Quality(
            agreement=_ends(agreed, code),
            shared_items=0 if agreed is None else int(agreed.items[code]),
            answer_seconds=float(np.median(own)),
            gold_labels=int(gold[code]),
            gold_wrong=_share_wrong(int(gold[code]), float(wrong[code]), mass),
        )
        for code, own in zip(given.tolist(), delays, strict=True)
    }


def _share_wrong(labels: int, wrong: float, mass: float) -> Ends | None:
    """With Jeffreys' interval, extended to contain the share; None without labels."""
    if not labels:
        return None
    share = wrong / labels
    lower, upper = betas.interval(np.array(_JEFFREYS + wrong), np.array(_JEFFREYS + labels - wrong), mass)
    return min(float(lower), share), share, max(float(upper), share)


def _ends(agreed: Agreement | None, place: int) -> Ends | None:
    if agreed is None or not agreed.items[place]:
        return None
    found = agreed.estimate
    return float(found.lower[place]), float(found.mean[place]), float(found.upper[place])
