"""What is learned of people who label, in the background because that takes seconds."""

from __future__ import annotations

import logging
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np

from service.config.model import ModelSettings
from service.domain.groupings import ALL
from service.monitoring.background_performance import ImmediateExecutor
from service.monitoring.group_index import GroupIndex
from service.monitoring.label_truth import LearnedTruth, learn_truth
from service.monitoring.outcome_table import OutcomeLedger

log = logging.getLogger(__name__)


@dataclass(eq=False)
class AnnotatorWatch:
    """Keeps what is known of the people who label items of one model up to date."""

    model: str
    settings: ModelSettings
    executor: Executor  # learns it
    rng: np.random.Generator  # spawns a generator for every learning
    rest_seconds: float  # from the end of one learning to the next

    def __post_init__(self) -> None:
        self._learning: Future[LearnedTruth] | None = None
        self._learned_from = -1  # labels
        self._due_at = -np.inf
        self.truth: LearnedTruth | None = None

    def refresh(self, index: GroupIndex, ledger: OutcomeLedger, *, now: float) -> None:
        """Collect what was learned, and learn again if it is due and there are other labels.

        The first time it is learned within the round: without it, labels would be taken for the truth.
        """
        self._take(now)
        if self._learning is not None or now < self._due_at:
            return
        items = ledger.labelled_items(at=now)
        if items is None or not len(items.rows) or len(items.items) == self._learned_from:
            return
        self._learned_from = len(items.items)
        grouping = self._grouping(index, ledger)
        learning = self.executor if self.truth is not None else ImmediateExecutor()
        self._learning = learning.submit(
            learn_truth,
            items,
            ledger.people,
            index[grouping],
            grouping=grouping,
            classes=len(self.settings.classes),
            rng=self.rng.spawn(1)[0],
            reliability=self.settings.labels_per_item.reliability,
        )
        self._take(now)

    def _take(self, now: float) -> None:
        if self._learning is None or not self._learning.done():
            return
        learning, self._learning = self._learning, None
        self._due_at = now + self.rest_seconds
        error = learning.exception()
        if error is None:
            self.truth = learning.result()
        else:
            self._learned_from = -1
            log.error(
                "the reliability of annotators could not be learned; what was learned before is used",
                extra={"model": self.model},
                exc_info=error,
            )

    def _grouping(self, index: GroupIndex, ledger: OutcomeLedger) -> str:
        """The grouping by whose groups most labels were requested: there accuracies may differ."""
        asked = {each.asked_grouping for each in self.settings.assessments.values()}
        known = sorted(name for name in asked if name in index.space.groupings and index[name].names)
        return max(known, key=ledger.count_drawn_for, default=ALL)
