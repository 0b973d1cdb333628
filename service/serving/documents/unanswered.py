"""Label requests of a model that ended without a label: the document, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document


class ScoreBinAnswers(Document):
    """Ended label requests of items whose scores are in one bin."""

    score: float = Field(description="lower end of the bin")
    ended: int
    unanswered: int


class UnansweredState(Document):
    """Ended label requests of a model, of those whose outcomes are kept."""

    ended: int = Field(description="requests that were answered or skipped, or have expired")
    skipped: int
    expired: int
    skip_dependence: float = Field(
        description="probability that it depends on the item whether its request is skipped"
    )
    expiry_dependence: float = Field(
        description="probability that it depends on the item whether its request expires"
    )
    worst_case_share: float = Field(
        description="share of the requests whose items estimates allow to have any true class"
    )
    by_score: list[ScoreBinAnswers] = Field(description="the same by score bin, bins without any left out")


def unanswered_state(snapshot: ModelSnapshot) -> UnansweredState:
    """What is known of requests that ended without a label."""
    known = snapshot.unanswered
    edges = [0.0, *snapshot.settings.score_edges]
    bins = np.flatnonzero(known.ended_by_score).tolist()
    return UnansweredState.of(
        known,
        by_score=[
            ScoreBinAnswers(
                score=edges[each],
                ended=int(known.ended_by_score[each]),
                unanswered=int(known.unanswered_by_score[each]),
            )
            for each in bins
        ],
    )
