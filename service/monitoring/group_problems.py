"""What is wrong with groups: their accuracy, their calibration, their traffic (pure).

Every condition is that of an alert rule, whose name is given. One entry stands for all alerts about one
matter of one group, as Alertmanager tells the most severe of them only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.arrays import Flags
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES
from service.domain.groupings import ALL
from service.monitoring.evidence_base import EvidenceKind
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.history import Since
from service.monitoring.problem import Problem
from service.statistics.estimate import Estimate

if TYPE_CHECKING:
    from service.monitoring.snapshot import ModelSnapshot

_LN_10 = math.log(10)
_WITHOUT_DRIFT = frozenset({SCORE_BIN, POSITIVE_SCORE, VOTES, CHALLENGE})
"""Groupings of Credence itself, which divide the same traffic by what drift compares."""


def group_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    """Problems of all groups of all groupings."""
    for name, grouping in snapshot.groupings.items():
        level = "Model" if name == ALL else "Group"
        yield from _accuracy_low(snapshot, name, grouping, f"Credence{level}AccuracyLow")
        yield from _less_accurate(snapshot, name, grouping, f"Credence{level}AccuracyDropped")
        yield from _miscalibrated(snapshot, name, grouping, f"Credence{level}Miscalibrated")
        if name not in _WITHOUT_DRIFT:
            yield from _drift(snapshot, name, grouping, f"Credence{level}Drift")


def _accuracy_low(
    snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, alert: str
) -> Iterator[Problem]:
    confirmed = _confirmed(grouping, "below_threshold")
    weakest = _adjusted_low(grouping, snapshot.settings.alerts.confidence)
    for g in np.flatnonzero(grouping.low | confirmed).tolist():
        proof = ("CredenceGroupAccuracyLowConfirmed",) if confirmed[g] else ()
        below = grouping.accuracy_below
        yield Problem(
            kind="accuracy_low",
            severity="critical" if proof else "warning",
            alerts=(
                *proof,
                *((alert,) if grouping.low[g] else ()),
                *(("CredenceWeakestGroupAccuracyLow",) if g == weakest else ()),
            ),
            probability=None if below is None else float(below[g]),
            value=_value(grouping.adjusted, g),
            groups=len(grouping.groups),
            limit=float(grouping.min_accuracy[g]),
            log10_e=_log10_e(grouping, "below_threshold", g) if proof else None,
            **_facts(name, grouping, g),
        )


def _less_accurate(
    snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, alert: str
) -> Iterator[Problem]:
    changed, declined = _confirmed(grouping, "changed"), _confirmed(grouping, "declined")
    before = _lower_a_week_ago(snapshot, name, grouping)
    dropped = grouping.enough & (grouping.accuracy.upper < before)
    for g in np.flatnonzero(changed | declined | dropped).tolist():
        change = None if grouping.evidence is None else grouping.evidence.changes.get(g)
        proof: list[tuple[str, bool, EvidenceKind]] = [
            ("CredenceGroupChanged", changed[g], "changed"),
            ("CredenceGroupDeclineConfirmed", declined[g], "declined"),
        ]
        proven = [(alert_name, kind) for alert_name, is_proven, kind in proof if is_proven]
        yield Problem(
            kind="less_accurate",
            severity="critical" if proven else "warning",
            alerts=(*(each for each, _ in proven), *((alert,) if dropped[g] else ())),
            value=_value(grouping.adjusted, g),
            groups=len(grouping.groups),
            limit=float(before[g]) if dropped[g] else None,
            log10_e=_log10_e(grouping, proven[0][1], g) if proven else None,
            at=change.at if changed[g] and change is not None else None,
            since=Since(change.at, or_earlier=False) if changed[g] and change is not None else None,
            **_facts(name, grouping, g),
        )


def _miscalibrated(
    snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, alert: str
) -> Iterator[Problem]:
    """Groups above the threshold; and one note for all that are confirmed to be miscalibrated by any amount.

    Scores are rarely exact, and with enough labels that is confirmed of most groups. So no alert fires about
    it, and there is no note where the error is known to be within the threshold.
    """
    confirmed = _confirmed(grouping, "miscalibrated")
    above = grouping.ece_above
    for g in np.flatnonzero(grouping.miscalibrated).tolist():
        proof = ("CredenceGroupMiscalibrationConfirmed",) if confirmed[g] else ()
        yield Problem(
            kind="miscalibrated",
            severity="critical" if proof else "warning",
            alerts=(*proof, alert),
            probability=None if above is None else float(above[g]),
            value=_value(grouping.ece, g),
            limit=float(grouping.max_ece[g]),
            log10_e=_log10_e(grouping, "miscalibrated", g) if proof else None,
            **_facts(name, grouping, g),
        )
    others = confirmed & ~grouping.miscalibrated
    if above is not None:
        others &= ~(grouping.enough_for_ece & (above <= 1 - snapshot.settings.alerts.confidence))
    if others.any() and grouping.evidence is not None:
        worst = int(np.argmax(np.where(others, grouping.evidence.log_e["miscalibrated"], -np.inf)))
        yield Problem(
            kind="miscalibrated",
            severity="info",
            alerts=(),
            value=_value(grouping.ece, worst),
            limit=float(grouping.max_ece[worst]) if grouping.has_max_ece[worst] else None,
            log10_e=_log10_e(grouping, "miscalibrated", worst),
            amount=int(others.sum()) - 1,
            **_facts(name, grouping, worst),
        )


def _drift(snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot, alert: str) -> Iterator[Problem]:
    drift = None if snapshot.drift is None else snapshot.drift.groupings.get(name)
    if drift is None:
        return
    for g in np.flatnonzero(drift.drifted).tolist():
        yield Problem(
            kind="drift",
            severity="warning",
            alerts=(alert,),
            mix=drift.mix_of(g) if drift.mixes else "",
            amount=float(drift.score[g]),
            limit=snapshot.settings.drift.max_distance,
            **_facts(name, grouping, g),
        )


def _facts(name: str, grouping: GroupingSnapshot, group: int) -> dict[str, Any]:
    beliefs = grouping.beliefs
    return {
        "grouping": name,
        "group": grouping.groups[group],
        "share": float(beliefs.shares[group]),
        "labels": float(beliefs.labels_counted[group]),
    }


def _adjusted_low(grouping: GroupingSnapshot, confidence: float) -> int | None:
    """The group that is below the threshold even if the choice among all groups is accounted for."""
    weakest, below = grouping.weakest, grouping.accuracy_below
    if below is None or weakest is None or weakest.below is None or weakest.below < confidence:
        return None
    return int(np.where(grouping.enough & grouping.has_min_accuracy, below, 0.0).argmax())


def _confirmed(grouping: GroupingSnapshot, kind: EvidenceKind) -> Flags:
    if grouping.evidence is None:
        return np.zeros(len(grouping.groups), np.bool_)
    return grouping.evidence.confirmed[kind]


def _log10_e(grouping: GroupingSnapshot, kind: EvidenceKind, group: int) -> float | None:
    return None if grouping.evidence is None else float(grouping.evidence.log_e[kind][group]) / _LN_10


def _lower_a_week_ago(snapshot: ModelSnapshot, name: str, grouping: GroupingSnapshot) -> Any:
    """Lower ends of the intervals of a week ago [G]; 0 of groups that had too few labels then."""
    then = {} if snapshot.week_ago is None else snapshot.week_ago.lower.get(name, {})
    return np.array([then.get(group, 0.0) for group in grouping.groups])


def _value(estimate: Estimate, group: int) -> tuple[float, float, float]:
    return float(estimate.lower[group]), float(estimate.mean[group]), float(estimate.upper[group])
