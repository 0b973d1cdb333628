"""What is learned of people who label, in the background because that takes seconds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.config.assessments import ChallengeSettings, EnsembleSettings, PerformanceSettings
from service.config.model import ModelSettings
from service.domain.groupings import ALL
from service.monitoring.background_job import BackgroundJob, ImmediateExecutor
from service.monitoring.group_index import GroupIndex
from service.monitoring.item_labels import Person
from service.monitoring.label_quality import LabelQuality, label_quality
from service.monitoring.label_truth import (
    LEARNED_FROM,
    ItemGroups,
    LabelledItems,
    LearnedTruth,
    learn_truth,
)
from service.monitoring.outcome_table import OutcomeLedger

log = logging.getLogger(__name__)

_FIRST_LEARNED_FROM: Final = 500
"""Items that the first learning uses: it keeps the round waiting, and the next one uses all."""


@dataclass(frozen=True)
class LearnedAnnotators:
    """What is learned of people from their labels."""

    truth: LearnedTruth
    quality: LabelQuality


@dataclass(eq=False)
class AnnotatorWatch:
    """Keeps what is known of the people who label items of one model up to date."""

    model: str
    settings: ModelSettings
    executor: Executor  # learns it
    rest_seconds: float  # from the end of one learning to the next

    def __post_init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        # Within the round: without anything learned, labels would be taken for the truth.
        self._job = BackgroundJob[LearnedAnnotators](ImmediateExecutor(), self.rest_seconds)
        self._learned_from: tuple[OutcomeLedger, int] | None = None  # and how often its labels had changed
        self.learned: LearnedAnnotators | None = None

    def refresh(self, index: GroupIndex, ledger: OutcomeLedger, *, now: float) -> None:
        """Collect what was learned, and learn again if it is due and labels have changed.

        The first learning is within the round, from a few items, and the second one follows at once in the
        background.
        """
        self._take(now)
        if not self._job.is_due(now) or self._learned_from == (ledger, ledger.label_changes):
            return
        items = ledger.labelled_items(at=now)
        if items is None or not items.original.any():
            self._forget()
            return
        is_first = self.learned is None
        most = _FIRST_LEARNED_FROM if is_first else LEARNED_FROM
        groupings = self._groupings(index, ledger)
        self._learned_from = ledger, ledger.label_changes
        self._job.start(
            _learn,
            items.newest(most),
            ledger.people,
            index.crossed(groupings),
            groupings=groupings,
            settings=self.settings,
        )
        self._take(now)
        if is_first and self.learned is not None:
            self._job = BackgroundJob(self.executor, self.rest_seconds)
            if len(items.rows) > most:
                self._learned_from = None

    def _take(self, now: float) -> None:
        if (learned := self._job.take(now)) is None:
            return
        error = learned.exception()
        if error is None:
            self.learned = learned.result()
        else:
            self._learned_from = None
            log.error(
                "the reliability of annotators could not be learned; what was learned before is used",
                extra={"model": self.model},
                exc_info=error,
            )

    def _groupings(self, index: GroupIndex, ledger: OutcomeLedger) -> list[str]:
        """The groupings between whose groups accuracies may differ.

        That by which most labels were requested; and those by what the tasks compare, as an imputation that
        does not know of a difference makes it smaller (Meng, Statistical Science 1994).
        """
        assessments = self.settings.assessments.values()
        asked = {each.asked_grouping for each in assessments}
        known = sorted(name for name in asked if name in index.space.groupings and index[name].names)
        compared = [
            name
            for each in assessments
            if isinstance(each, PerformanceSettings | EnsembleSettings | ChallengeSettings)
            for name in (each.asked_grouping, each.grouping)
            if index[name].names
        ]
        return list(dict.fromkeys([max(known, key=ledger.count_drawn_for, default=ALL), *compared]))


def _learn(
    items: LabelledItems,
    people: Sequence[Person],
    groups: ItemGroups,
    *,
    groupings: Sequence[str],
    settings: ModelSettings,
) -> LearnedAnnotators:
    policy = settings.labels_per_item
    # Replicas that have the same labels learn the same, so that their alerts agree.
    of_truth, of_quality = np.random.default_rng(len(items.items)).spawn(2)
    truth = learn_truth(
        items,
        people,
        groups,
        groupings=groupings,
        classes=len(settings.classes),
        rng=of_truth,
        reliability=policy.reliability,
    )
    quality = label_quality(items, people, least=policy.least, mass=settings.interval, rng=of_quality)
    return LearnedAnnotators(truth, quality)
