"""The problems of a model: the one list that page, API, `credence status`, metrics and `/readyz` show (pure).

Whatever an alert of deploy/prometheus fires about a model is in it, and nothing else: what no alert fires
about is a note. Where an alert waits, or looks at a longer time, the problem is there before the alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from service.domain.groupings import ALL
from service.monitoring.assessment_problems import assessment_problems
from service.monitoring.group_problems import group_problems
from service.monitoring.history import Since
from service.monitoring.problem import PROBLEM_KINDS, SEVERITIES, STALE_SECONDS, Problem, Severity
from service.monitoring.supply_problems import supply_problems

if TYPE_CHECKING:  # a snapshot says since when it knows of its problems, which are found here
    from service.monitoring.snapshot import ModelSnapshot


def problems(snapshot: ModelSnapshot, now: float) -> list[Problem]:
    """Everything that is wrong with a model, the most severe first.

    A snapshot says what was wrong when it was taken; `now` says whether that is too long ago.
    """
    if now - snapshot.taken_at <= STALE_SECONDS:
        return list(snapshot.problems)
    stale = Problem(
        kind="estimates_stale",
        severity="critical",
        alerts=("CredenceSnapshotStale",),
        at=snapshot.taken_at,
        since=Since(snapshot.taken_at, or_earlier=False),
    )
    return [stale, *snapshot.problems]


def listed_problems(snapshot: ModelSnapshot) -> tuple[Problem, ...]:
    """Problems and notes of when a snapshot was taken, the most severe first, with the time they began."""
    unknown = Since(snapshot.taken_at, or_earlier=True)
    found = (
        replace(
            one,
            since=one.since or snapshot.since.get(one.fault, unknown),
            mass=snapshot.settings.interval,
        )
        for one in snapshot_problems(snapshot)
    )
    return tuple(sorted(found, key=_order))


def snapshot_problems(snapshot: ModelSnapshot) -> Iterator[Problem]:
    """Problems and notes of when a snapshot was taken, in any order; most without the time they began."""
    yield from group_problems(snapshot)
    yield from assessment_problems(snapshot)
    yield from supply_problems(snapshot)


def count_by_severity(found: Iterable[Problem]) -> dict[Severity, int]:
    """Number of problems of every severity."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for one in found:
        counts[one.severity] += 1
    return counts


def _order(problem: Problem) -> tuple[int, bool, int, float, float]:
    return (
        SEVERITIES.index(problem.severity),
        problem.grouping != ALL,
        PROBLEM_KINDS.index(problem.kind),
        -round(problem.probability or 0.0, 3),
        -(problem.share or 0.0),
    )
