"""People and vendors who label items of a model, where labels may be wrong: the documents."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from service.monitoring.annotator_estimates import AnnotatorEstimate, VendorEstimate
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Interval, Seconds, finite_or_none
from service.serving.documents.words import cell_of_interval, percent_interval
from service.statistics.label_errors import ERROR_BOUNDS

MOST_ANNOTATORS = 200


class LabelAgreement(Document):
    """How often people agree who label the same item."""

    agreement: Interval = Field(
        description="probability that two people give an item the same label, over all items; the mean is "
        "the weighted estimate"
    )
    alpha: Interval | None = Field(
        description="Krippendorff's alpha: 1 if all agree, 0 if as often as by chance; null if all labels "
        "are one class"
    )
    shared_items: int = Field(description="items with several labels that these come from")
    sentence: str = Field(description="the same in words")


class ErrorBound(Document):
    """First labels about gold items whose predictions are all correct, or all incorrect."""

    labels: int = Field(description="first labels about such items")
    wrong: int = Field(description="wrong ones of these")
    bound: float | None = Field(
        description="upper bound of the share of wrong labels, valid at every moment; null if it may be over "
        "30%"
    )


class LabelErrors(Document):
    """How often first labels are wrong at most, learned from gold items."""

    of_correct: ErrorBound = Field(description="about correct predictions")
    of_incorrect: ErrorBound = Field(description="about incorrect predictions")
    sentence: str = Field(description="the same in words")


class LabellerState(Document):
    """What is known of the labels of a person, or a vendor."""

    reliability: Interval = Field(
        description="share of the model's items about which labels of the person, or the vendor, are right; "
        "from everybody's labels"
    )
    labels: int = Field(description="labels that the reliability comes from")
    below: float | None = Field(
        description="posterior probability that the reliability is below alerts.min_reliability; null "
        "without one"
    )
    agreement: Interval | None = Field(
        description="probability that somebody else gives an item the same label; null without shared items"
    )
    shared_items: int = Field(description="items with labels of others that the agreement comes from")
    answer_seconds: Seconds | None = Field(
        description="median time from the first issue of a request to its label, including the time until "
        "somebody takes it"
    )
    gold_labels: int = Field(description="first labels about gold items")
    gold_wrong: Interval | None = Field(description="share of these that are wrong; null without any")


class AnnotatorState(LabellerState):
    """One annotator."""

    vendor: str = Field(description="whose annotator it is; empty without vendors")
    annotator: str = Field(description="the pseudonym in the labels")

    @property
    def full_name(self) -> str:
        """Vendor and annotator, as people read them."""
        return " / ".join(filter(None, (self.vendor, self.annotator)))


class VendorState(LabellerState):
    """One vendor."""

    vendor: str = Field(description="empty for people without one")
    people: int = Field(description="annotators who gave labels")
    unreliable: int | None = Field(
        description="annotators who are probably below alerts.min_reliability; null without one"
    )


def annotator_states(snapshot: ModelSnapshot) -> list[AnnotatorState]:
    """Those with labels, the least reliable first."""
    found = () if snapshot.labelling is None else snapshot.labelling.annotators
    return [AnnotatorState.of(each, **_labels(each)) for each in found[:MOST_ANNOTATORS]]


def vendor_states(snapshot: ModelSnapshot) -> list[VendorState]:
    """Those with labels, the least reliable first."""
    found = () if snapshot.labelling is None else snapshot.labelling.vendors
    return [VendorState.of(each, **_labels(each)) for each in found]


def label_agreement(snapshot: ModelSnapshot) -> LabelAgreement | None:
    """None where labels are the truth, or too few items have several."""
    if (
        snapshot.labelling is None
        or (agreement := Interval.of_ends(snapshot.labelling.quality.agreement)) is None
    ):
        return None
    quality = snapshot.labelling.quality
    alpha = Interval.of_ends(quality.alpha)
    chance = (
        "" if alpha is None else f" Krippendorff's alpha is {cell_of_interval(alpha, scale=1, decimals=2)}."
    )
    return LabelAgreement(
        agreement=agreement,
        alpha=alpha,
        shared_items=quality.shared_items,
        sentence=f"Two people agree on {percent_interval(agreement)} of all items, estimated from "
        f"{quality.shared_items:,} items with several labels.{chance}",
    )


def label_errors(snapshot: ModelSnapshot) -> LabelErrors | None:
    """None unless `labels_per_item.max_error` is `learned`."""
    allowed, gold = snapshot.wrong_labels, snapshot.gold
    if not allowed.is_learned:
        return None
    most, other = allowed.most_of_correct, allowed.most_of_incorrect
    from_labels = f"{gold.of_correct:,} gold labels, {gold.wrong_of_correct:,} of them wrong"
    return LabelErrors(
        of_correct=ErrorBound(labels=gold.of_correct, wrong=gold.wrong_of_correct, bound=most),
        of_incorrect=ErrorBound(labels=gold.of_incorrect, wrong=gold.wrong_of_incorrect, bound=other),
        sentence="No evidence against the accuracy threshold yet: over "
        f"{ERROR_BOUNDS[-1]:.0%} of the first labels about correct predictions may be wrong ({from_labels})."
        if most is None
        else f"Evidence allows for {100 * most:g}% wrong first labels about correct predictions, learned "
        f"from {from_labels}.",
    )


def _labels(estimate: AnnotatorEstimate | VendorEstimate) -> dict[str, Any]:
    quality = estimate.quality
    return {
        "reliability": Interval(lower=estimate.lower, mean=estimate.mean, upper=estimate.upper),
        "agreement": Interval.of_ends(quality.agreement),
        "shared_items": quality.shared_items,
        "answer_seconds": finite_or_none(quality.answer_seconds),
        "gold_labels": quality.gold_labels,
        "gold_wrong": Interval.of_ends(quality.gold_wrong),
    }
