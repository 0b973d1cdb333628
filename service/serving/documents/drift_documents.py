"""The documents of the HTTP API about drift: how far recent traffic is from its reference, without labels."""

from __future__ import annotations

from pydantic import Field

from service.serving.documents.schemas import Document, Seconds


class MixState(Document):
    """One thing by which recent traffic and the reference are compared."""

    mix: str = Field(description="`score`, `predicted_class`, `attribute:<name>` or `votes`")
    distance: float | None = Field(
        description="Jensen-Shannon distance, noise included: 0 the same, 1 nothing in common; null without "
        "traffic in the reference, or of late"
    )
    surely: float = Field(description="the same less what noise could make of it")


class ScoreBinTraffic(Document):
    """Traffic of one score bin."""

    lower_edge: float
    upper_edge: float
    reference: float = Field(description="share of the group's predictions in the reference")
    recent: float = Field(description="share of its recent predictions")


class GroupDrift(Document):
    """How far one group's recent traffic is from its reference."""

    model: str
    taken_at: Seconds
    grouping: str
    group: str
    reference_since: Seconds | None = Field(description="when the reference begins; null from the beginning")
    reference_until: Seconds
    recent_since: Seconds
    reference_predictions: int = Field(description="of the group")
    recent_predictions: int = Field(description="of the group")
    drifted: bool = Field(description="whether `suspicion` is more than `max_distance`")
    suspicion: float = Field(description="how far it surely is, by the mix that tells most")
    max_distance: float = Field(description="drift.max_distance of the configuration")
    mixes: list[MixState]
    score_difference: float | None = Field(
        description="largest difference of the cumulative shares of score bins (Kolmogorov-Smirnov)"
    )
    volume_ratio: float | None = Field(
        description="predictions a second, over those in the reference; null where its time is not known"
    )
    expected_accuracy: float | None = Field(
        description="what recent scores promise, by what the model's labels say of its score bins"
    )
    below_expected: float | None = Field(description="probability that the group is less accurate than that")
    bins: list[ScoreBinTraffic]
    sentence: str = Field(description="the same in words")
