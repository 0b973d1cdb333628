"""The start-up phase: label requests go evenly to groups whose reference is not complete (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from service.config.assessments import AssessmentSettings, ComparisonSettings, PolicySettings
from service.config.model import ReferenceSettings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import OTHER
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.suspected_groups import Suspects
from service.store.requests import OpenRequest


@dataclass(frozen=True)
class ReferenceFilling:
    """Labels of the references of one grouping, and requests for those that are missing; arrays are [G]."""

    names: list[str]  # of the groups
    collected: Ints  # labels in the reference
    wanted: Ints  # labels of a complete reference; 0 of groups whose reference is not collected
    coming: Ints  # requested labels that may be of the reference, and do not count yet
    suspected: Flags  # labels requested now are not of the reference
    label_share: float  # of all label requests
    waits: bool = False  # suspected groups need the labels more

    @property
    def missing(self) -> Ints:
        """Labels to be requested for the reference; none of suspected groups, or while it waits for these."""
        lacking = np.maximum(self.wanted - self.collected - self.coming, 0)
        return np.where(self.suspected | self.waits, 0, lacking)

    @cached_property
    def suspected_names(self) -> frozenset[str]:
        """Names of the groups under suspicion."""
        return frozenset(compress(self.names, self.suspected))

    def groups(self, available: Flags, wanted: int, rng: np.random.Generator) -> list[int]:
        """Groups that their references ask for, one a label, those with the fewest labels first.

        Each of the labels that are wanted may be one of these.
        """
        missing = np.where(available, self.missing, 0)
        count = min(int(rng.binomial(max(wanted, 0), self.label_share)), int(missing.sum()))
        have = np.where(missing > 0, (self.collected + self.coming).astype(np.float64), np.inf)
        full, named = self.wanted, []
        for _ in range(count):
            group = int(rng.choice(np.flatnonzero(have == have.min())))
            named.append(group)
            have[group] = have[group] + 1 if have[group] + 1 < full[group] else np.inf
        return named

    def among(self, available: Flags) -> Floats | None:
        """Probability that the next of these requests goes to each group; None where none is missing."""
        lacks = available & (self.missing > 0)
        if not lacks.any():
            return None
        have = np.where(lacks, (self.collected + self.coming).astype(np.float64), np.inf)
        fewest = have == have.min()
        return np.asarray(fewest / fewest.sum(), np.float64)


def reference_filling(
    asked: AssessmentSettings,
    settings: ReferenceSettings,
    grouping: GroupingSnapshot,
    opened: Iterable[OpenRequest],
    suspects: Suspects,
) -> ReferenceFilling:
    """What the references of a grouping still need.

    `opened` are the open requests of the grouping. Nothing is collected if a window was set, of score bins,
    or if the labels of the assessment are planned.
    """
    evidence = grouping.evidence
    names, size = grouping.groups, len(grouping.groups)
    collected, coming = np.zeros(size, np.int64), np.zeros(size, np.int64)
    is_closed = np.zeros(size, np.bool_)
    if evidence is not None:
        collected = evidence.state.reference_labels.astype(np.int64)
        is_closed = evidence.state.is_closed
        coming = evidence.waiting.astype(np.int64)
    index = {name: group for group, name in enumerate(names)}
    for request in opened:
        if not request.suspected and (group := index.get(request.group)) is not None:
            coming[group] += 1
    wanted = np.where(is_closed, collected, np.maximum(settings.labels, collected))
    if OTHER in index:
        wanted[index[OTHER]] = 0
    if isinstance(asked, ComparisonSettings):
        wanted = np.where(np.isin(names, asked.between), wanted, 0)
    has_window = evidence is not None and evidence.reference is not None
    if has_window or not isinstance(asked, PolicySettings) or not grouping.by.has_threshold:
        wanted = np.zeros(size, np.int64)
    waits = bool(suspects.weights.any())
    return ReferenceFilling(names, collected, wanted, coming, suspects.groups, settings.label_share, waits)
