"""Evidence about groups that is valid at any time: the documents of the HTTP API, and the metrics."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from service.domain.arrays import Floats
from service.monitoring.anytime_tests import EvidenceKind, GroupingEvidence
from service.serving.documents.schemas import Document, GroupChange
from service.serving.measures import Measures, gauge, metrics_of
from service.serving.metrics import GROUP_LABELS, Metric, MetricTable, highest

EvidenceOfKind = tuple[GroupingEvidence, EvidenceKind]

measure = Measures[GroupingEvidence]()

_LN_10 = math.log(10)


class Claim(Document):
    """What evidence says against a group."""

    kind: EvidenceKind = Field(
        description="below_threshold, declined (from the reference), miscalibrated, however little, or "
        "changed (at some label it became less accurate)"
    )
    log10_e: float = Field(description="decimal logarithm of the e-value")
    confirmed: bool = Field(
        description="whether it is taken for true: of all that is confirmed about the model at one time, a "
        "share of alpha is false on average, at the most, however often you look"
    )


class GroupEvidenceState(Document):
    """Evidence about one group, from the labels that its grouping asked for."""

    labels: int = measure(
        lambda evidence: evidence.known.labels,
        gauge(
            "credence_group_evidence_labels",
            "labels",
            "Labels that evidence about the group is made from: those that the grouping's own assessments asked for.",
        ),
    )
    reference_labels: int = measure(
        lambda evidence: evidence.known.reference_labels,
        gauge(
            "credence_group_evidence_reference_labels",
            "labels",
            "Labels of the reference that the group is compared with.",
        ),
        description="labels of the reference that the group is compared with",
    )
    lower: float | None = measure(
        lambda evidence: evidence.known.lower,
        gauge(
            "credence_group_accuracy_confidence_sequence_lower_ratio",
            "ratio",
            "Lower bound of accuracy that holds at all times at once (a confidence sequence), but with a probability of credence_evidence_alpha_ratio.",
        ),
        description="bound that holds the accuracy at all times at once, but for alpha",
    )
    upper: float | None = measure(
        lambda evidence: evidence.known.upper,
        gauge(
            "credence_group_accuracy_confidence_sequence_upper_ratio",
            "ratio",
            "Upper bound of accuracy that holds at all times at once, likewise.",
        ),
        description="upper bound, likewise; null without a label",
    )
    claims: list[Claim] = Field(description="those of which there is evidence")
    change: GroupChange | None
    sentences: list[str] = Field(description="what is confirmed, in words")


def _confirmed_change_at(evidence: GroupingEvidence) -> Floats:
    return np.array(
        [evidence.changes[g].at if g in evidence.changes else math.nan for g in range(len(evidence.groups))]
    )


EVIDENCE = MetricTable[GroupingEvidence](
    GROUP_LABELS,
    (
        *metrics_of(GroupEvidenceState),
        Metric(
            "credence_group_confirmed_change_timestamp_seconds",
            "seconds",
            "When the first label after a confirmed change was requested, as it is likeliest to have begun; absent without one.",
            _confirmed_change_at,
        ),
    ),
)
EVIDENCE_BY_KIND = MetricTable[EvidenceOfKind](
    (*GROUP_LABELS, "kind"),
    (
        Metric(
            "credence_group_evidence_log10",
            "",
            "Evidence against a group that may be looked at any time, by kind: below_threshold, declined (from its reference), miscalibrated, or changed (at some label it became less accurate than its reference, or than alerts.min_accuracy, which it reached there); decimal logarithm of the e-value. Absent where the grouping's assessments have asked for no label of the group. Of `other`, the highest.",
            lambda of: of[0].log_e[of[1]] / _LN_10,
            other=highest,
        ),
        Metric(
            "credence_group_evidence_confirmed",
            "",
            "1 where that evidence is taken for true, else 0. Over all groups, groupings and kinds of a model, a share of credence_evidence_alpha_ratio of what is confirmed is false, on average, at the most; while nothing is wrong, that is also the probability that anything is ever confirmed. Of `other`, 1 if any is.",
            lambda of: np.where(np.isnan(of[0].log_e[of[1]]), np.nan, of[0].confirmed[of[1]]),
            other=highest,
        ),
    ),
)
