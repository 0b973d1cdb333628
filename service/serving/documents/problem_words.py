"""Problems in words: what is wrong, how bad, how sure, and what to do; the same on every surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.domain.times import in_words
from service.monitoring.drift_mixes import CLASSES, SCORES
from service.monitoring.problem import Problem, ProblemKind
from service.serving.documents import words

_ALL_TRAFFIC = "all traffic"


def title(problem: Problem) -> str:
    """What is wrong, and where."""
    return _TITLES[problem.kind](problem)


def sentence(problem: Problem) -> str:
    """How bad it is, and how sure that is: numbers first."""
    return _SENTENCES[problem.kind](problem)


def action(problem: Problem) -> str:
    """What to do first; the runbook has the rest."""
    if not problem.alerts:
        return _NOTED if problem.limit is None else _NOTED_AND_UNDECIDED
    return _ACTIONS[problem.kind]


def place(problem: Problem) -> str:
    """The group that a problem is about; empty if it is about none."""
    if not problem.grouping:
        return ""
    return _ALL_TRAFFIC if problem.grouping == "all" else f"{problem.grouping} = {problem.group}"


def mix_in_words(name: str) -> str:
    """What drift compares, as people call it."""
    plain = {SCORES: "scores", CLASSES: "predicted classes"}
    return plain.get(name) or f"{name.removeprefix('attribute:')} values"


def _at(text: str) -> Callable[[Problem], str]:
    return lambda problem: f"{text}: {place(problem)}"


def _of(text: str) -> Callable[[Problem], str]:
    return lambda problem: f"{text}: {problem.subject}"


def _interval(problem: Problem) -> str:
    if problem.value is None:
        return "unknown"
    lower, point, upper = (100 * end for end in problem.value)
    chosen = f", adjusted for {problem.groups:,} groups" if problem.groups > 1 else ""
    return f"{point:.1f}% ({100 * problem.mass:g}% CI {lower:.1f}-{upper:.1f}%{chosen})"


def _limit(problem: Problem, name: str = "threshold") -> str:
    return "" if problem.limit is None else f", {name} {100 * problem.limit:g}%"


def _probable(problem: Problem, claim: str) -> str:
    if problem.probability is None:
        return ""
    return f"; {words.probability(problem.probability)} probability of {claim}"


def _confirmed(problem: Problem) -> str:
    return "" if problem.log10_e is None else f" Confirmed (e-value {_e_value(problem.log10_e)})."


def _e_value(log10_e: float) -> str:
    return f"{10**log10_e:.0f}" if log10_e < 3 else f"10^{log10_e:.0f}"  # noqa: PLR2004 - 1,000


def _size(problem: Problem) -> str:
    if problem.labels is None:
        return _share(problem)
    number = f"{problem.labels:,.0f} label{'' if round(problem.labels) == 1 else 's'}"
    return f" {number}{_share(problem).replace(' ', ', ', 1) or '.'}"


def _share(problem: Problem) -> str:
    if problem.share is None or problem.grouping == "all":
        return ""
    return f" {words.percent(problem.share)} of traffic."


def _accuracy_low(problem: Problem) -> str:
    claim = _probable(problem, "being below")
    return f"Accuracy {_interval(problem)}{_limit(problem)}{claim}.{_size(problem)}{_confirmed(problem)}"


def _less_accurate(problem: Problem) -> str:
    before = []
    if problem.at is not None:
        before.append(f"Accuracy fell at about {in_words(problem.at)}.")
    elif problem.log10_e is not None:
        before.append("Accuracy is below that of the reference.")
    if problem.limit is not None:
        before.append(f"A week ago it was at least {words.percent(problem.limit)}.")
    now = f"Accuracy now {_interval(problem)}."
    return f"{now} {' '.join(before)}{_size(problem)}{_confirmed(problem)}"


def _miscalibrated(problem: Problem) -> str:
    claim = _probable(problem, "being above")
    error = f"Expected calibration error {_interval(problem)}{_limit(problem)}{claim}."
    proof = (
        "" if problem.log10_e is None else f" Miscalibration confirmed (e-value {_e_value(problem.log10_e)})."
    )
    return f"{error}{_size(problem)}{proof}"


def _miscalibrated_title(problem: Problem) -> str:
    others = f" and {problem.amount:,.0f} more by {problem.grouping}" if problem.amount else ""
    return f"Miscalibrated{'' if problem.alerts else ' by some amount'}: {place(problem)}{others}"


def _drift(problem: Problem) -> str:
    differ = f": {mix_in_words(problem.mix)} differ from the reference" if problem.mix else ""
    return (
        f"Drift score {problem.amount or 0:.2f}, threshold {problem.limit:g}{differ}.{_share(problem)} "
        "Drift alone does not prove a loss of accuracy."
    )


def _target_missed(problem: Problem) -> str:
    end = "at most" if problem.part.startswith(("false", "difference")) else "at least"
    measure = _measure(problem)
    target = "" if problem.limit is None else f", target {end} {100 * problem.limit:g}%"
    claim = _probable(problem, "missing it")
    return f"{measure} {_interval(problem)}{target}{claim}.{_size(problem)}{_confirmed(problem)}"


def _measure(problem: Problem) -> str:
    name = problem.part.replace("_", " ")
    return "F1" if name == "f1" else name.capitalize()


def _member_target_missed(problem: Problem) -> str:
    claim = _probable(problem, "missing it")
    return f"Precision {_interval(problem)}{_limit(problem, 'target at least')}{claim}.{_size(problem)}"


def _challenger(problem: Problem) -> str:
    if problem.value is None:
        return ""
    lower, mean, upper = (100 * end for end in problem.value)
    e_value = "" if problem.log10_e is None else f" E-value {_e_value(problem.log10_e)}."
    return (
        f"Accuracy of the challenger minus the model: {mean:+.1f} points "
        f"({100 * problem.mass:g}% CI {lower:+.1f} to {upper:+.1f}).{e_value}{_size(problem)}"
    )


def _vendor_unreliable(problem: Problem) -> str:
    claim = _probable(problem, "being below")
    count = round(problem.amount or 0)
    people = f" {count:,} {'person is' if count == 1 else 'people are'} probably below it." if count else ""
    return f"Reliability {_interval(problem)}{_limit(problem)}{claim}.{_size(problem)}{people}"


def _labels_stale(problem: Problem) -> str:
    last = "no label ever arrived" if problem.at is None else f"the last label is of {in_words(problem.at)}"
    return f"{problem.amount or 0:.0f} label requests are open; {last}."


def _requests_unanswered(problem: Problem) -> str:
    expired = f"{problem.amount or 0:,.0f} label requests expired in the last 24 hours"
    return f"{expired}; fewer than one in ten was answered or skipped."


def _answers_missing(problem: Problem) -> str:
    return (
        f"{words.percent(problem.share or 0)} of the requests lack a label. Whether it is missing may "
        f"depend on the item, so accuracy intervals are {100 * (problem.amount or 0):.1f} points wider."
    )


def _budget_exhausted(problem: Problem) -> str:
    renews = "it never renews" if problem.at is None else f"it renews at {in_words(problem.at)}"
    return f"All {problem.amount or 0:,.0f} labels are spent, and none is requested; {renews}."


def _performance_stale(problem: Problem) -> str:
    if problem.at is None:
        return "The estimation fails, and there is no earlier estimate."
    return f"The last estimate is of {in_words(problem.at)}."


def _times_clipped(problem: Problem) -> str:
    return (
        f"{words.percent(problem.amount or 0)} of recent predictions claim a time too far in the "
        f"{problem.subject}; they count at the bound (bounds.lateness_hours) or at their record's time."
    )


def _values_folded(problem: Problem) -> str:
    return (
        f"{words.percent(problem.amount or 0)} of traffic has a value without a group of its own; at most "
        f"{problem.limit or 0:,.0f} values have one (bounds.attribute_values)."
    )


def _pool_exhausted(problem: Problem) -> str:
    return (
        f"{problem.amount or 0:,.0f} draws of the last 15 minutes found no item; fewer labels are requested "
        "than the budget allows."
    )


def _estimates_stale(problem: Problem) -> str:
    of = "unknown" if problem.at is None else in_words(problem.at)
    return f"The newest estimates are of {of}; what is wrong now is not known."


_TITLES: Mapping[ProblemKind, Callable[[Problem], str]] = {
    "estimates_stale": lambda _: "Estimates are stale",
    "accuracy_low": _at("Accuracy below target"),
    "less_accurate": _at("Less accurate than before"),
    "performance_target_missed": lambda problem: f"Target missed: {_measure(problem)} ({problem.subject})",
    "error_rate_violated": lambda problem: f"{_measure(problem)} beyond its limit: {place(problem)}",
    "error_rates_differ": lambda problem: f"Groups are treated unequally: {_measure(problem).lower()}",
    "miscalibrated": _miscalibrated_title,
    "member_target_missed": lambda problem: f"Precision below target: {problem.part} ({problem.subject})",
    "challenger_worse": lambda problem: f"Challenger is worse: {place(problem)} ({problem.subject})",
    "drift": _at("Drift"),
    "vendor_unreliable": lambda problem: (
        f"Labels less reliable than required: {problem.subject or 'people without a vendor'}"
    ),
    "labels_stale": lambda _: "No labels for 24 hours",
    "requests_unanswered": _of("Label requests expire unanswered"),
    "answers_missing": lambda _: "Labels are missing",
    "budget_exhausted": _of("Budget exhausted"),
    "performance_stale": _of("Performance is not re-estimated"),
    "times_clipped": lambda problem: f"Times of predictions too far in the {problem.subject}",
    "values_folded": _of("Attribute values without a group"),
    "challenger_better": lambda problem: f"Challenger is better: {place(problem)} ({problem.subject})",
    "performance_design_disagrees": _of("The score model is wrong"),
    "performance_misfit": _of("Scores do not fit two classes"),
    "pool_exhausted": _of("Pool exhausted"),
}
_SENTENCES: Mapping[ProblemKind, Callable[[Problem], str]] = {
    "estimates_stale": _estimates_stale,
    "accuracy_low": _accuracy_low,
    "less_accurate": _less_accurate,
    "performance_target_missed": _target_missed,
    "error_rate_violated": _target_missed,
    "error_rates_differ": _target_missed,
    "miscalibrated": _miscalibrated,
    "member_target_missed": _member_target_missed,
    "challenger_worse": _challenger,
    "drift": _drift,
    "vendor_unreliable": _vendor_unreliable,
    "labels_stale": _labels_stale,
    "requests_unanswered": _requests_unanswered,
    "answers_missing": _answers_missing,
    "budget_exhausted": _budget_exhausted,
    "performance_stale": _performance_stale,
    "times_clipped": _times_clipped,
    "values_folded": _values_folded,
    "challenger_better": _challenger,
    "performance_design_disagrees": lambda _: words.LABELS_CONTRADICT,
    "performance_misfit": lambda problem: (
        "No mixture of two distributions fits the scores (p-value "
        f"{words.probability(problem.amount or 0.0)}); intervals need more labels."
    ),
    "pool_exhausted": _pool_exhausted,
}
_NOTED = "No alert: set alerts.max_ece to say from which calibration error on this is a problem."
_NOTED_AND_UNDECIDED = "No alert: more labels decide whether the calibration error is above the threshold."
_ACTIONS: Mapping[ProblemKind, str] = {
    "estimates_stale": "Check Redis and the processes that take snapshots.",
    "accuracy_low": "Compare with deployments and roll back, or stop this traffic.",
    "less_accurate": "Find out what changed at that time; fix the input, or roll back.",
    "performance_target_missed": "Move the threshold, or roll back.",
    "error_rate_violated": "Send predictions of this group to human review, or move its threshold.",
    "error_rates_differ": "Find out what differs for the group; move its threshold, or retrain.",
    "miscalibrated": "Recalibrate the scores, or move thresholds that depend on them.",
    "member_target_missed": "Retrain this member, raise its threshold, or remove it.",
    "challenger_worse": "Do not use the challenger here.",
    "drift": "Compare recent items with older ones; fix the input, or set a new reference.",
    "vendor_unreliable": "Find who is least reliable; check the instructions, and stop requests to them.",
    "labels_stale": "Ask the labelling team whether requests arrive; check the dead letters of labels.",
    "answers_missing": "Ask why items are skipped or late; send hard ones to experts.",
    "requests_unanswered": "Check the dead letters of labels; raise lease_seconds if answers come late.",
    "budget_exhausted": "Handle the worst problem first; if labels are needed now, raise budget.labels.",
    "performance_stale": "Read the error in the log; restart the replica if only one fails.",
    "times_clipped": "Fix the producer's clock; for a backfill, raise bounds.lateness_hours.",
    "values_folded": "Send a coarser attribute, or raise bounds.attribute_values.",
    "challenger_better": "Check every group, then replace the model.",
    "performance_design_disagrees": "No alert: do not rely on the curve; a higher budget narrows intervals.",
    "performance_misfit": "Nothing, if the intervals are narrow enough; else raise the budget.",
    "pool_exhausted": "Lower the budget, or raise bounds.pool_items.",
}
