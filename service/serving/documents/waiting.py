"""Predictions that wait for labels that nobody requests: the document, made from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from service.domain.times import duration, in_words
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.waiting_predictions import QUANTILES, WaitingPredictions
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds

_REASONS = {
    "early": "without a prediction so far",
    "no_prediction": "displaced before a prediction came",
    "too_late": "too late",
    "dropped": "of dropped hours, or without room",
}


class WaitingState(Document):
    """Predictions of a model that wait for labels that nobody requests."""

    items: int = Field(description="predictions that wait")
    share: float = Field(
        description="share of the predictions that is kept: 1 unless there are more than bounds.join_items"
    )
    oldest_at: Seconds | None = Field(description="when the hour of the oldest ones began; null if none wait")
    dropped_hours: int = Field(description="hours whose predictions were dropped ever, because too many came")
    median_delay_seconds: Seconds | None = Field(
        description="median time from a prediction to its label, of the newest outcomes; null without any"
    )
    most_delay_seconds: Seconds | None = Field(description="99% quantile of the same")
    not_joined: dict[str, int] = Field(
        description="labels of the last day that could not be joined, by reason: early, no_prediction, "
        "too_late or dropped"
    )
    imputed_from_labels: int | None = Field(
        description="answered requests that items without a label are imputed from; null unless "
        "`unrequested_labels.items` is `unknown`, and requests were answered"
    )
    imputed_from_at: Seconds | None = Field(description="when these were all; null likewise")
    sentence: str = Field(description="the same in words")


def waiting_state(snapshot: ModelSnapshot) -> WaitingState | None:
    """What waits; None for a model that takes no unrequested labels."""
    if (waiting := snapshot.waiting) is None:
        return None
    joins = waiting.joins
    median, most = (waiting.delays.get(each) for each in QUANTILES)
    return WaitingState(
        items=joins.items,
        share=joins.share,
        oldest_at=joins.oldest,
        dropped_hours=joins.dropped,
        median_delay_seconds=median,
        most_delay_seconds=most,
        not_joined=dict(waiting.not_joined),
        imputed_from_labels=None if waiting.learned is None else waiting.learned.labels,
        imputed_from_at=None if waiting.learned is None else waiting.learned.at,
        sentence=" ".join(_sentences(waiting)),
    )


def _sentences(waiting: WaitingPredictions) -> Iterator[str]:
    joins = waiting.joins
    oldest = "" if joins.oldest is None else f", the oldest since {in_words(joins.oldest)}"
    waits = "1 prediction waits" if joins.items == 1 else f"{joins.items:,} predictions wait"
    yield f"{waits} for unrequested labels{oldest}."
    if joins.share < 1:
        yield f"{words.percent(joins.share)} of the predictions are kept."
    if joins.dropped:
        yield f"Dropped hours of predictions: {joins.dropped:,}."
    if waiting.delays:
        median, most = (duration(waiting.delays[each]) for each in QUANTILES)
        yield f"Half of the labels came within {median}, 99% within {most}."
    if waiting.not_joined:
        reasons = (f"{number:,} {_REASONS[reason]}" for reason, number in waiting.not_joined.items())
        yield f"Labels of the last day that were not joined: {', '.join(reasons)}."
    if (learned := waiting.learned) is not None:
        yield (
            f"Items without a label are imputed from {learned.labels:,} answered requests, "
            f"as of {in_words(learned.at)}."
        )
