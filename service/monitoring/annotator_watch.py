"""What is learned of people who label, in the background because that takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from service.config.assessments import ChallengeSettings, EnsembleSettings, PerformanceSettings
from service.config.model import ModelSettings
from service.domain.groupings import ALL
from service.monitoring.background_job import BackgroundLearning, Lesson
from service.monitoring.group_index import GroupIndex
from service.monitoring.item_labels import Person
from service.monitoring.label_quality import LabelQuality, label_quality
from service.monitoring.label_truth import (
    LEARNED_FROM,
    ItemGroups,
    KnownItems,
    LabelledItems,
    LearnedTruth,
    learn_truth,
)
from service.monitoring.outcome_table import OutcomeLedger

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
        self._learning = BackgroundLearning[LearnedAnnotators](
            self.executor,
            self.rest_seconds,
            model=self.model,
            what="the reliability of annotators could not be learned",
        )

    @property
    def learned(self) -> LearnedAnnotators | None:
        """What is known of them; None without labels, and where labels are the truth."""
        return self._learning.learned

    def refresh(self, index: GroupIndex, ledger: OutcomeLedger, *, now: float) -> None:
        """Collect what was learned, and learn again if it is due and labels have changed."""
        lesson = partial(self._lesson, index, ledger, now)
        self._learning.refresh((ledger, ledger.label_changes), lesson, now=now)

    def _lesson(
        self, index: GroupIndex, ledger: OutcomeLedger, now: float, is_first: bool
    ) -> Lesson[LearnedAnnotators] | None:
        items = ledger.labelled_items(at=now)
        if items is None or not items.original.any():
            return None
        most = _FIRST_LEARNED_FROM if is_first else LEARNED_FROM
        groupings = self._groupings(index, ledger)
        learn = partial(
            _learn,
            items.newest(most),
            ledger.people,
            None if (gold := ledger.gold_items(at=now)) is None else gold.newest(most),
            index.crossed(groupings),
            groupings=groupings,
            settings=self.settings,
        )
        return Lesson(learn, is_all=len(items.rows) <= most)

    def _groupings(self, index: GroupIndex, ledger: OutcomeLedger) -> list[str]:
        """The groupings between whose groups accuracies may differ.

        That by which most labels were requested; and those by what the tasks compare, as an imputation that
        does not know of a difference makes it smaller (Meng, Statistical Science 1994).
        """
        assessments = self.settings.assessments.values()
        asked = {each.asked_grouping: each.chosen_grouping for each in assessments}
        known = sorted(name for name in asked if name in index.space.groupings and index[name].names)
        compared = [
            name
            for each in assessments
            if isinstance(each, PerformanceSettings | EnsembleSettings | ChallengeSettings)
            for name in (each.asked_grouping, each.grouping)
            if index[name].names
        ]
        most = max(known, key=ledger.count_drawn_for, default=ALL)
        return list(dict.fromkeys([asked.get(most, most), *compared]))


def _learn(
    items: LabelledItems,
    people: Sequence[Person],
    gold: KnownItems | None,
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
        gold=gold,
    )
    quality = label_quality(
        items, people, least=policy.least, mass=settings.interval, rng=of_quality, gold=gold
    )
    return LearnedAnnotators(truth, quality)
