"""Snapshots as the documents of evidence."""

from __future__ import annotations

import math

from service.config.model import ModelSettings
from service.domain.times import in_words
from service.monitoring.anytime_tests import KINDS, Change, EvidenceKind, GroupingEvidence
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import words
from service.serving.documents.evidence_measures import Claim, GroupEvidenceState
from service.serving.documents.schemas import GroupChange
from service.serving.measures import read_measures

_MOST_CHANGES = 50
_SAID: dict[EvidenceKind, str] = {
    "below_threshold": "its accuracy is below {threshold:g} %",
    "declined": "it is less accurate than in its reference",
    "miscalibrated": "its scores are not right as probabilities",
    "changed": "it has become less accurate",
}


def group_evidence(
    name: str, grouping: GroupingSnapshot, group: int, settings: ModelSettings
) -> GroupEvidenceState | None:
    """Evidence about one group; None of a grouping that asked for no labels.

    Args:
        name: of the grouping.
        grouping: what is known of it.
        group: which of its groups.
        settings: of the model.
    """
    evidence = grouping.evidence
    if evidence is None:
        return None
    claims = [
        Claim(
            kind=kind,
            log10_e=float(evidence.log_e[kind][group]) / math.log(10),
            confirmed=bool(evidence.confirmed[kind][group]),
        )
        for kind in KINDS
        if not math.isnan(evidence.log_e[kind][group])
    ]
    change = evidence.changes.get(group)
    return GroupEvidenceState(
        **read_measures(GroupEvidenceState, evidence, group),
        claims=claims,
        change=None if change is None else _change(name, grouping.groups[group], change),
        sentences=_sentences(claims, settings),
    )


def is_confirmed(grouping: GroupingSnapshot, kind: EvidenceKind, group: int) -> bool:
    """Whether evidence of a kind against a group is taken for true."""
    return grouping.evidence is not None and bool(grouping.evidence.confirmed[kind][group])


def changes(snapshot: ModelSnapshot) -> list[GroupChange]:
    """Groups that became less accurate, the latest first."""
    found = [
        _change(name, evidence.groups[group], change)
        for name, evidence in _known(snapshot)
        for group, change in evidence.changes.items()
    ]
    return sorted(found, key=lambda change: -change.at)[:_MOST_CHANGES]


def _known(snapshot: ModelSnapshot) -> list[tuple[str, GroupingEvidence]]:
    told = ((name, grouping.evidence) for name, grouping in snapshot.groupings.items())
    return [(name, evidence) for name, evidence in told if evidence is not None]


def _sentences(claims: list[Claim], settings: ModelSettings) -> list[str]:
    threshold = 100 * (settings.alerts.min_accuracy or 0.0)
    said = [
        f"Evidence confirms that {_SAID[claim.kind].format(threshold=threshold)}: "
        f"10^{claim.log10_e:.1f} to one."
        for claim in claims
        if claim.confirmed
    ]
    if said:
        said.append(
            "Of all that is confirmed about a model at one time, at most "
            f"{100 * settings.evidence.alpha:g}% is false on average, however often you look."
        )
    return said


def _change(grouping: str, group: str, change: Change) -> GroupChange:
    place = words.place(grouping, group)
    return GroupChange(
        grouping=grouping,
        group=group,
        at=change.at,
        earliest=change.earliest,
        latest=change.latest,
        predicted_at=change.predicted_at,
        labels=change.labels,
        sentence=f"{place[0].upper()}{place[1:]} has been less accurate since about {in_words(change.at)}.",
    )
