"""What is wrong with a model, and its state in a line: the documents, made from the list of problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from service.config.assessments import EnsembleSettings, PerformanceSettings
from service.domain.times import in_words
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.pipeline_problem import PipelineProblem
from service.monitoring.problem import SEVERITIES, STALE_SECONDS, Problem, ProblemKind, Severity
from service.monitoring.problems import count_by_severity, problems
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents import problem_words, words
from service.serving.documents.base import Document, Interval, Range, Seconds

MOST_PROBLEMS = 50

_LATE_ROUNDS = 3
_LATE_SECONDS = 5.0

ModelStatus = Literal[
    "critical", "warning", "info", "ok", "no_estimates", "no_traffic", "no_labels", "no_threshold"
]
"""The worst severity of a model's problems; without one, whether it is well, or why nobody can say so."""


class ProblemState(Document):
    """One thing that is wrong with a model."""

    kind: ProblemKind
    severity: Severity = Field(description="critical: act now; warning: on the next working day; info")
    title: str = Field(description="what is wrong, and where")
    sentence: str = Field(description="how bad it is, and how sure that is")
    action: str = Field(description="what to do first")
    alert: str | None = Field(
        description="the most severe alert about it, which is also the name of its runbook; null for a note"
    )
    alerts: list[str] = Field(description="all alerts that fire about it")
    grouping: str | None = Field(description="null if it is not about a group")
    group: str | None
    subject: str | None = Field(
        description="the assessment, attribute, vendor or direction of times that it is about; or null"
    )
    probability: float | None = Field(
        description="posterior probability that the threshold or target is violated; null if there is none"
    )
    share: float | None = Field(description="of the traffic")
    labels: float | None
    value: Interval | Range | None = Field(
        description="the estimate that is compared: the median for `performance_target_missed`, the mean for "
        "other kinds"
    )
    threshold: float | None = Field(description="what it is compared with")
    log10_e: float | None = Field(description="decimal logarithm of the e-value that confirms it")
    since: Seconds
    since_or_earlier: bool = Field(description="whether it may have begun before `since`")


class Headline(Document):
    """The state of a model in a line."""

    status: ModelStatus = Field(
        description="worst severity of its problems; `ok`: no problem, with recent traffic and up-to-date "
        "estimates; other values say what is missing"
    )
    title: str = Field(description="the same in words")
    detail: str = Field(description="the worst problem, or what is missing, as a sentence")
    problem_count: int = Field(description="of the model")
    pipeline_problem_count: int = Field(description="problems of the pipeline, critical or warning")
    critical: int = Field(description="problems of this severity")
    warning: int = Field(description="the same")
    info: int = Field(description="the same")


_NONE_YET = Headline(
    status="no_estimates",
    title="No estimates yet",
    detail="The first round has not finished.",
    problem_count=0,
    pipeline_problem_count=0,
    critical=0,
    warning=0,
    info=0,
)


def headline(
    snapshot: ModelSnapshot | None,
    found: list[Problem],
    *,
    pipeline: Sequence[PipelineProblem] = (),
    now: float,
    tick_seconds: float,
) -> Headline:
    """The state of a model in a line, by its problems and those of the pipeline that estimates come from.

    A round is due every `tick_seconds`. Pipeline problems of severity info are left to the pipeline's line.
    """
    serious = [one for one in pipeline if one.severity != "info"]
    if serious and (not found or _rank(serious[0].severity) <= _rank(found[0].severity)):
        number = "a problem" if len(serious) == 1 else f"{len(serious)} problems"
        line: _Line = (serious[0].severity, f"The pipeline has {number}", serious[0].sentence)
    elif snapshot is None:
        return _NONE_YET
    else:
        line = _problem_line(found) if found else _line(snapshot, now, tick_seconds)
    status, title, detail = line
    return Headline(
        status=status,
        title=title,
        detail=detail,
        problem_count=len(found),
        pipeline_problem_count=len(serious),
        **count_by_severity(found),
    )


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def model_headline(
    snapshot: ModelSnapshot | None,
    *,
    pipeline: Sequence[PipelineProblem] = (),
    now: float,
    tick_seconds: float,
) -> Headline:
    """The same of a model whose problems nobody has listed."""
    found = [] if snapshot is None else problems(snapshot, now)
    return headline(snapshot, found, pipeline=pipeline, now=now, tick_seconds=tick_seconds)


def problem_states(found: Sequence[Problem]) -> list[ProblemState]:
    """The most severe problems, at most `MOST_PROBLEMS`."""
    return [_problem_state(one) for one in found[:MOST_PROBLEMS]]


def _problem_state(problem: Problem) -> ProblemState:
    if problem.since is None:
        raise ValueError("a listed problem has a time since when it is known")
    return ProblemState.of(
        problem,
        title=problem_words.title(problem),
        sentence=problem_words.sentence(problem),
        action=problem_words.action(problem),
        alert=problem.alerts[0] if problem.alerts else None,
        alerts=list(problem.alerts),
        grouping=problem.grouping or None,
        group=problem.group or None,
        subject=problem.subject or None,
        value=_value(problem),
        threshold=problem.limit,
        since=problem.since.time,
        since_or_earlier=problem.since.or_earlier,
    )


def _value(problem: Problem) -> Interval | Range | None:
    if problem.value is None or problem.kind != "performance_target_missed":
        return Interval.of_ends(problem.value)
    lower, median, upper = problem.value
    return Range(lower=lower, median=median, upper=upper)


_Line = tuple[ModelStatus, str, str]


def _problem_line(found: list[Problem]) -> _Line:
    worst, counts = found[0].severity, count_by_severity(found)
    number = f"{len(found):,} problem{'' if len(found) == 1 else 's'}"
    parts = [f"{count:,} {severity}" for severity, count in counts.items() if count]
    return (
        worst,
        f"{number}: {', '.join(parts)}",
        f"{problem_words.title(found[0])}. {problem_words.sentence(found[0])}",
    )


def _line(snapshot: ModelSnapshot, now: float, tick_seconds: float) -> _Line:
    """What is said while no problem is known: that all is well, if nothing is missing to know it."""
    missing = next(_missing(snapshot, now, tick_seconds), None)
    return missing or ("ok", "No problems", _all_is_well(snapshot))


def _missing(snapshot: ModelSnapshot, now: float, tick_seconds: float) -> Iterator[_Line]:
    """What is missing for anybody to know that all is well, the most important first."""
    window, traffic_at = snapshot.settings.drift, snapshot.trends.traffic_at
    asked = snapshot.settings.assessments_of(PerformanceSettings)
    if not snapshot.predictions or traffic_at is None:
        yield "no_traffic", "No traffic yet", "Estimates appear after the first predictions of this model."
        return
    if freshness(snapshot, now, tick_seconds) != "fresh":
        due = f"a round is due every {tick_seconds:g} s"
        yield "no_estimates", "Estimates are late", f"They are of {in_words(snapshot.taken_at)}; {due}."
    if snapshot.taken_at - traffic_at > window.window_hours * 3_600:
        yield "no_traffic", "No recent traffic", f"No predictions in the last {window.window_hours:g} h."
    if asked.keys() - snapshot.performances.keys():
        detail = "The first estimate of the performance is still being computed."
        yield "no_estimates", "No estimate of performance yet", detail
    if not snapshot.outcomes:
        yield "no_labels", "No labels yet", "Without labels nobody can say whether its predictions are right."
    if not _has_threshold(snapshot):
        detail = "Set alerts.min_accuracy or alerts.max_ece to list groups that violate it here."
        yield "no_threshold", "No threshold is configured", detail


def freshness(snapshot: ModelSnapshot, now: float, tick_seconds: float) -> Literal["fresh", "late", "stale"]:
    """Whether estimates are of the last rounds, one of which is due every `tick_seconds`."""
    age = now - snapshot.taken_at
    if age > STALE_SECONDS:
        return "stale"
    return "late" if age > _LATE_ROUNDS * tick_seconds + _LATE_SECONDS else "fresh"


def _all_is_well(snapshot: ModelSnapshot) -> str:
    groups = sum(len(grouping.groups) for grouping in snapshot.groupings.values())
    confidence = words.percent(snapshot.settings.alerts.confidence).replace(".0%", "%")
    number = f"{groups:,} group{'' if groups == 1 else 's'}"
    well = f"None of {number} violates a threshold ({confidence} confidence)."
    undecided = [
        f"{count:,} of {len(grouping.groups):,} by {name}"
        for name, grouping in snapshot.groupings.items()
        if grouping.by.kind != "all" and (count := undecided_groups(grouping))
    ]
    return f"{well} Undecided, more labels needed: {', '.join(undecided)}." if undecided else well


def undecided_groups(grouping: GroupingSnapshot) -> int:
    """Number of groups that need more labels until it is decided whether they meet the accuracy threshold."""
    return int(grouping.undecided.sum())


def _has_threshold(snapshot: ModelSnapshot) -> bool:
    """Whether a group has a threshold, or an assessment a target."""
    settings = snapshot.settings
    targets = (
        *(one.targets.wanted for one in settings.assessments_of(PerformanceSettings).values()),
        *(one.targets.wanted for one in settings.assessments_of(EnsembleSettings).values()),
    )
    groupings = snapshot.groupings.values()
    return any(targets) or any((one.has_min_accuracy | one.has_max_ece).any() for one in groupings)
