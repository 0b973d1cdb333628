"""The documents of the HTTP API about evidence that may be looked at any time."""

from __future__ import annotations

from pydantic import Field

from service.monitoring.anytime_tests import EvidenceKind
from service.serving.documents.schemas import Document, GroupChange


class Claim(Document):
    """What evidence says against a group."""

    kind: EvidenceKind = Field(
        description="below_threshold, declined (from the reference), miscalibrated, however little, or "
        "changed (at some label it became less accurate)"
    )
    log10_e: float = Field(description="decimal logarithm of the e-value")
    confirmed: bool = Field(
        description="whether it is taken for true: of all that is confirmed about the model at one time, a "
        "share of alpha is false on average, at the most, however often you look"
    )


class GroupEvidenceState(Document):
    """Evidence about one group, from the labels that its grouping asked for."""

    labels: int
    reference_labels: int = Field(description="labels of the reference that the group is compared with")
    lower: float | None = Field(
        description="bound that holds the accuracy at all times at once, but for alpha"
    )
    upper: float | None = Field(description="upper bound, likewise; null without a label")
    claims: list[Claim] = Field(description="those of which there is evidence")
    change: GroupChange | None
    sentences: list[str] = Field(description="what is confirmed, in words")
