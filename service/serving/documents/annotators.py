"""People who label items of a model, where labels may be wrong: the document, made from a snapshot."""

from __future__ import annotations

from pydantic import Field

from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Interval

MOST_ANNOTATORS = 200


class AnnotatorState(Document):
    """One annotator."""

    vendor: str = Field(description="whose annotator it is; empty without vendors")
    annotator: str = Field(description="the pseudonym in the labels")
    labels: int = Field(description="labels that count")
    reliability: Interval = Field(
        description="share of the model's items about which the annotator is right, from everybody's labels"
    )


def annotator_states(snapshot: ModelSnapshot) -> list[AnnotatorState]:
    """Those with labels, the least reliable first."""
    return [
        AnnotatorState(
            vendor=each.vendor,
            annotator=each.annotator,
            labels=each.labels,
            reliability=Interval(lower=each.lower, mean=each.mean, upper=each.upper),
        )
        for each in snapshot.annotators[:MOST_ANNOTATORS]
    ]
