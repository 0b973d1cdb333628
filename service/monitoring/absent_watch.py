"""What is learned of items without a self-selected label, in the background because that takes seconds."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final

from service.config.model import ModelSettings
from service.monitoring.absent_learning import LearnedAccuracies, learn_accuracies
from service.monitoring.background_job import BackgroundLearning, Lesson
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import model_requested_items
from service.store.outcome_entries import Position

_FIRST_LEARNED_FROM: Final = 300
"""Strata of items that the first learning uses: it keeps the round waiting, and the next one uses all."""

_HOUR: Final = 3_600.0


@dataclass(eq=False)
class AbsentWatch:
    """Keeps what is known of one model's items without a self-selected label up to date."""

    model: str
    settings: ModelSettings
    executor: Executor  # learns it
    rest_seconds: float  # from the end of one learning to the next

    def __post_init__(self) -> None:
        self._learning = BackgroundLearning[LearnedAccuracies](
            self.executor,
            self.rest_seconds,
            model=self.model,
            what="items without a label could not be learned of",
        )

    @property
    def learned(self) -> LearnedAccuracies | None:
        """What is known of them; None without answered requests, and where labels are not self-selected."""
        return self._learning.learned

    def refresh(self, index: GroupIndex, ledger: OutcomeLedger, read_to: Position, *, now: float) -> None:
        """Collect what was learned, and learn again if it is due and outcomes have come.

        `read_to` is the position of the last outcome in the ledger. Labels also age: without a new one, it is
        learned again every hour.
        """
        if ledger.unrequested == "unknown":
            version = (ledger, read_to, now // _HOUR)
            self._learning.refresh(version, partial(self._lesson, index, ledger, now), now=now)

    def _lesson(
        self, index: GroupIndex, ledger: OutcomeLedger, now: float, is_first: bool
    ) -> Lesson[LearnedAccuracies] | None:
        items = model_requested_items(self.settings, index, ledger, now=now)
        if items is None:
            return None
        is_all = not is_first or items.requested_strata <= _FIRST_LEARNED_FROM
        chosen = items if is_all else items.even_part(_FIRST_LEARNED_FROM)
        return Lesson(partial(learn_accuracies, chosen), is_all=is_all)
