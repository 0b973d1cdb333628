"""Evidence about groups that is valid at any time: documents and metrics, made from a snapshot."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from service.config.model import ModelSettings
from service.domain.arrays import Floats
from service.domain.times import in_words
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.evidence_base import KINDS, EvidenceKind
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.serving.documents import words
from service.serving.documents.base import Document, Seconds
from service.serving.metrics import (
    GROUP_LABELS,
    Measures,
    Metric,
    MetricTable,
    highest,
    metrics_of,
    read_measures,
)
from service.statistics.label_errors import WrongLabels
from service.store.checkpoints import DatedChange

EvidenceOfKind = tuple[GroupingEvidence, EvidenceKind]

measure = Measures[GroupingEvidence]()

_LN_10 = math.log(10)
_CLAIMS: dict[EvidenceKind, str] = {
    "below_threshold": "its accuracy is below {threshold:g}%",
    "declined": "it is less accurate than in its reference",
    "miscalibrated": "its scores are miscalibrated",
    "changed": "it has become less accurate",
}


class GroupChange(Document):
    """A group that became less accurate than in its reference, or than a threshold that it met there."""

    grouping: str
    group: str
    at: Seconds = Field(description="most probable change point: when the first label after it was requested")
    earliest: Seconds = Field(description="lower end of its 90% interval")
    latest: Seconds = Field(description="upper end")
    predicted_at: Seconds = Field(description="when the item of that label was predicted")
    labels: int = Field(description="requested for the grouping since then")
    sentence: str = Field(description="the same in words")


class Claim(Document):
    """A claim against a group, with its evidence."""

    kind: EvidenceKind = Field(
        description="below_threshold; declined (less accurate than in the reference); miscalibrated, by any amount; or "
        "changed (less accurate since a change point)"
    )
    log10_e: float = Field(description="decimal logarithm of the e-value")
    confirmed: bool = Field(
        description="whether it is confirmed: the false discovery rate over all claims about the model is at most alpha, "
        "valid under continuous monitoring"
    )


class GroupEvidenceState(Document):
    """Anytime-valid evidence about one group, from the labels requested for its grouping."""

    labels: int = measure(
        lambda evidence: evidence.state.labels - evidence.state.unanswered,
        Metric(
            "credence_group_evidence_labels",
            "labels",
            "Labels behind the evidence about the group: those that the grouping's own assessments requested.",
        ),
    )
    reference_labels: int = measure(
        lambda evidence: evidence.state.reference_labels - evidence.state.reference_unanswered,
        Metric(
            "credence_group_evidence_reference_labels",
            "labels",
            "Labels of the reference that the group is compared with.",
        ),
        description="labels of the reference that the group is compared with",
    )
    lower: float | None = measure(
        lambda evidence: evidence.state.lower,
        Metric(
            "credence_group_accuracy_confidence_sequence_lower_ratio",
            "ratio",
            "Lower bound of a confidence sequence of accuracy: it holds at all times at once, except with a probability of credence_evidence_alpha_ratio.",
        ),
        description="lower end of the confidence sequence of accuracy: valid at every moment, with confidence 1 - alpha",
    )
    upper: float | None = measure(
        lambda evidence: evidence.state.upper,
        Metric(
            "credence_group_accuracy_confidence_sequence_upper_ratio",
            "ratio",
            "Upper bound of the same confidence sequence.",
        ),
        description="upper end; null without a label",
    )
    claims: list[Claim] = Field(description="one of each kind with evidence")
    change: GroupChange | None
    sentences: list[str] = Field(description="the confirmed claims in words")


def group_evidence(
    name: str, grouping: GroupingSnapshot, group: int, settings: ModelSettings
) -> GroupEvidenceState | None:
    """Evidence about one group; None if no labels were requested for the grouping."""
    evidence = grouping.evidence
    if evidence is None:
        return None
    claims = [
        Claim(
            kind=kind,
            log10_e=float(evidence.log_e[kind][group]) / _LN_10,
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
        sentences=_sentences(claims, grouping.min_accuracy[group].item(), settings, evidence.wrong_labels),
    )


def _sentences(
    claims: list[Claim], threshold: float, settings: ModelSettings, wrong_labels: WrongLabels
) -> list[str]:
    confirmed = [
        f"Evidence confirms that {_CLAIMS[claim.kind].format(threshold=100 * threshold)}: "
        f"e-value 10^{claim.log10_e:.1f}."
        for claim in claims
        if claim.confirmed
    ]
    if confirmed:
        wrong = wrong_labels.most_of_correct
        bound = f", if at most {100 * wrong:g}% of the labels are wrong" if wrong else ""
        if wrong_labels.is_learned:
            bound = ", if people are as reliable about gold items as about others"
        confirmed.append(
            "The false discovery rate of all confirmed findings about a model is at most "
            f"{100 * settings.evidence.alpha:g}%, under continuous monitoring{bound}."
        )
    return confirmed


def _change(grouping: str, group: str, change: DatedChange) -> GroupChange:
    place = words.place(grouping, group)
    return GroupChange.of(
        change,
        grouping=grouping,
        group=group,
        sentence=f"{place[0].upper()}{place[1:]} has been less accurate since about {in_words(change.at)}.",
    )


def _confirmed_change_at(evidence: GroupingEvidence) -> Floats:
    return np.array(
        [evidence.changes[g].at if g in evidence.changes else math.nan for g in range(len(evidence.groups))]
    )


# fmt: off
EVIDENCE = MetricTable[GroupingEvidence](GROUP_LABELS, (
    *metrics_of(GroupEvidenceState),
    Metric("credence_group_confirmed_change_timestamp_seconds", "seconds", "When a confirmed change most likely began: the time when the first label after it was requested; absent without one.", _confirmed_change_at),
))
EVIDENCE_BY_KIND = MetricTable[EvidenceOfKind]((*GROUP_LABELS, "kind"), (
    Metric("credence_group_evidence_log10", "", "Anytime-valid evidence against a group: decimal logarithm of the e-value, by kind: below_threshold, declined (from its reference), miscalibrated, or changed (at some label it became less accurate than its reference, or than its threshold of accuracy if it met that there). Absent if the grouping's assessments have requested no label of the group. For `other`, the highest.", lambda of: of[0].log_e[of[1]] / _LN_10, other=highest),
    Metric("credence_group_evidence_confirmed", "", "1 if that evidence is confirmed, else 0. Over all groups, groupings and kinds of a model the false discovery rate is at most credence_evidence_alpha_ratio, valid under continuous monitoring; while nothing is wrong, that is also the probability that anything is ever confirmed. For `other`, 1 if any group is.", lambda of: np.where(np.isnan(of[0].log_e[of[1]]), np.nan, of[0].confirmed[of[1]]), other=highest),
))
# fmt: on
