"""Decides when a trial has nothing more to wait for."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from service.serving.documents.models import ModelState

_SPENT_SECONDS: Final = 3.0
"""After the last label, until the round that counts it has certainly come."""

_QUIET_SECONDS: Final = 15.0
"""Without a new request, after which the groups have no more items to label."""

_STALLED_SECONDS: Final = 60.0
"""Without any progress, though rows are missing: they will not come."""


class Counts(NamedTuple):
    """What moves while a trial has something to wait for.

    Attributes:
        predictions: that Credence has counted.
        outcomes: labels that it has.
        events: of label requests.
        open: requests that are open.
        remaining: labels left in the budgets.
    """

    predictions: int
    outcomes: int
    events: int
    open: int
    remaining: int

    @classmethod
    def of(cls, state: ModelState) -> Self:
        """The counts in the state of a model."""
        assessments = state.assessments
        return cls(
            state.predictions,
            state.outcomes,
            sum(sum(each.events.values()) for each in assessments),
            sum(each.open_requests for each in assessments),
            sum(each.budget.remaining for each in assessments),
        )


class Settling:
    """Watches the counts of a model after all rows are sent."""

    def __init__(self) -> None:
        self._last: Counts | None = None
        self._changed_at = 0.0

    def is_settled(self, counts: Counts | None, *, sent: int, now: float) -> bool:
        """Whether all rows are counted and no further label will come.

        Args:
            counts: None before the first round.
            sent: rows that Kafka has.
            now: in seconds, of any origin that stays the same.
        """
        if counts != self._last:
            self._last, self._changed_at = counts, now
        if counts is None:
            # Nothing will ever be estimated of a file without a usable row.
            return sent == 0
        if counts.open:
            return False
        quiet = now - self._changed_at
        if counts.predictions < sent:
            return quiet >= _STALLED_SECONDS
        return quiet >= (_QUIET_SECONDS if counts.remaining else _SPENT_SECONDS)
