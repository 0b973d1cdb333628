"""How complete the references for declines are: a document of the HTTP API, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.domain.times import in_words
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Document


class ReferenceSummary(Document):
    """Labels of the references that declines are compared with."""

    labels: int = Field(description="in the references of all groups that labels are requested for")
    wanted: int = Field(description="when all of these references are complete; 0 if a window was set")
    incomplete_groups: int = Field(description="groups whose reference is not complete")
    suspected_groups: int = Field(
        description="suspected ones among them: labels requested now are not of their reference"
    )
    sentence: str = Field(description="the same in words")


def reference_summary(snapshot: ModelSnapshot) -> ReferenceSummary:
    """How many labels the references of a model have, of those that they need."""
    labels = wanted = incomplete = suspected = 0
    for name, grouping in snapshot.groupings.items():
        fillings = [
            state.filling
            for state in snapshot.assessments.values()
            if state.grouping == name and state.filling is not None
        ]
        if not fillings:
            continue
        # Of several assessments of a grouping, a comparison needs the references of two groups alone.
        needed = np.max([filling.wanted for filling in fillings], axis=0)
        collected = np.where(needed > 0, fillings[0].collected, 0)
        lacks = collected < needed
        if grouping.evidence is not None and snapshot.reference is not None:
            state = grouping.evidence.state
            labels += int((state.reference_labels - state.reference_unanswered).sum())
        labels += int(collected.sum())
        wanted += int(needed.sum())
        incomplete += int(lacks.sum())
        suspected += int((lacks & fillings[0].suspected).sum())
    return ReferenceSummary(
        labels=labels,
        wanted=wanted,
        incomplete_groups=incomplete,
        suspected_groups=suspected,
        sentence=_sentence(snapshot, labels, wanted, suspected),
    )


def _sentence(snapshot: ModelSnapshot, labels: int, wanted: int, suspected: int) -> str:
    window = snapshot.reference
    if not snapshot.settings.labels_per_item.has_evidence:
        return "No reference for declines: labels may be wrong, and labels_per_item.max_error is not set."
    if window is not None:
        return f"The reference for declines is the window until {in_words(window.until)}: {labels:,} labels."
    if not wanted:
        return "No reference for declines: no assessment requests labels by group."
    if labels >= wanted:
        return f"The reference for declines is complete: {labels:,} labels."
    said = f"Collecting the reference for declines: {labels:,} of {wanted:,} labels."
    if suspected:
        groups = "1 group is" if suspected == 1 else f"{suspected:,} groups are"
        said += f" Paused: {groups} suspected."
    return said
