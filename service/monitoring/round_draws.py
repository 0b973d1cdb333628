"""What was drawn in one round: assessments that request labels for one grouping share its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from service.domain.arrays import Floats
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.store.requests import Draw, IssueStatus

_TAKEN: Final = ("issued", "shared")


class RoundDraws(Counter[tuple[str, str]]):
    """Draws of new items in one round, by grouping and group."""

    def awaited(self, state: AssessmentSnapshot) -> Floats:
        """Requests of all assessments of a grouping that wait for an answer by now, per group [G]."""
        drawn_for = state.settings.asked_grouping
        return state.awaited + [self[drawn_for, group] for group in state.groups]

    def add(self, grouping: str, draws: Sequence[Draw], statuses: Sequence[IssueStatus]) -> None:
        """Count those that took effect."""
        taken = [draw.open for draw, status in zip(draws, statuses, strict=True) if status in _TAKEN]
        self.update((grouping, one.group) for one in taken if one.opinion == 1 and not one.gold)
