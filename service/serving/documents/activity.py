"""Label requests and labels: the documents, made from a snapshot."""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field

from service.domain.groupings import ByAttribute, Everything
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document, Seconds

_MOST_REQUESTS = 50


class RequestState(Document):
    """An open label request."""

    request_id: str
    assessment: str
    group: str | None = Field(
        description="group that it was drawn for; null if that would reveal the prediction to labellers"
    )
    requested_at: Seconds
    attempt: int
    predicted_class: str | None = Field(description="null if labellers must not see it")
    score: float | None = Field(description="null likewise")


class RecentLabel(Document):
    """A recent label."""

    request_id: str
    item_id: str
    assessment: str
    group: str = Field(description="group that it was requested for")
    predicted_class: str
    true_class: str
    correct: bool
    score: float
    given_at: Seconds
    delay_seconds: Seconds = Field(description="time from the first issue of its request to the label")


class FlowBin(Document):
    """Labels in one time bin."""

    begin: Seconds
    end: Seconds
    correct: int
    incorrect: int


class Activity(Document):
    """Open label requests and recent labels."""

    model: str
    taken_at: Seconds
    requests: list[RequestState] = Field(description="newest first, at most 50")
    labels: list[RecentLabel] = Field(description="newest first, at most 50")
    flow: list[FlowBin] = Field(description="oldest first")


def activity(snapshot: ModelSnapshot) -> Activity:
    """Open label requests and recent labels."""
    newest = sorted(snapshot.requests.items(), key=lambda item: -item[1].requested_at)[:_MOST_REQUESTS]
    flow = snapshot.flow
    revealed = {name for name, one in snapshot.settings.assessments.items() if one.reveal_prediction}
    # Of groups by class or score the name is, or narrows, what the model said.
    harmless = {
        name
        for name, state in snapshot.assessments.items()
        if (grouping := snapshot.groupings.get(state.grouping))
        and isinstance(grouping.by, Everything | ByAttribute)
    }
    return Activity.of(
        snapshot,
        requests=[
            RequestState.of(
                request,
                request_id=request_id,
                group=request.group if request.assessment in revealed | harmless else None,
                predicted_class=request.predicted_class if request.assessment in revealed else None,
                score=request.score if request.assessment in revealed else None,
            )
            for request_id, request in newest
        ],
        labels=[
            RecentLabel.of(
                entry.fact,
                assessment=entry.assessment,
                true_class=entry.label.true_class,
                correct=entry.fact.predicted_class == entry.label.true_class,
                given_at=entry.label.time,
                delay_seconds=max(0.0, entry.label.time - entry.fact.requested_at),
            )
            for entry in snapshot.recent
        ],
        flow=[
            FlowBin.at_index(flow, i, begin=begin, end=end)
            for i, (begin, end) in enumerate(pairwise(flow.edges.tolist()))
        ],
    )
