"""Results of assessments, in words for people who have never heard of the method."""

from __future__ import annotations

import math

import numpy as np

from service.config.assessments import (
    ComparisonSettings,
    ErrorRateSettings,
    EstimationSettings,
    IdentificationSettings,
    PerformanceSettings,
)
from service.domain.times import duration
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.binary_performance import PerformanceSnapshot
from service.monitoring.budget import BudgetState
from service.monitoring.challenger import ChallengeSnapshot
from service.monitoring.ensembles import EnsembleSnapshot
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.base import Interval, Range, Verdict
from service.serving.documents.questions import chooser, quality

NO_ESTIMATE = "No estimate yet: there is no traffic, or the first estimate is still being computed."

_NEARLY_CERTAIN = 0.999
_EVEN = 0.5
_VERDICTS: dict[Verdict, str] = {"meets": " meets", "fails": " FAILS", "open": "", "none": ""}


def percent(ratio: float) -> str:
    """A ratio as people read it."""
    return f"{100 * ratio:.1f}%"


def threshold(ratio: float) -> str:
    """A configured ratio as it was written."""
    return f"{100 * ratio:g}%"


def probability(ratio: float) -> str:
    """A probability as people read it: never 0 or 100%, which no evidence gives."""
    if ratio > _NEARLY_CERTAIN:
        return "over 99.9%"
    if ratio < 1 - _NEARLY_CERTAIN:
        return "under 0.1%"
    return percent(ratio)


def percent_interval(interval: Interval | Range) -> str:
    """A posterior as people read it."""
    return f"{percent(interval.point)} [{100 * interval.lower:.1f}, {100 * interval.upper:.1f}]"


def cell_of_interval(interval: Interval, *, scale: float = 100, decimals: int = 1) -> str:
    """An interval in a column of a terminal's table, in percent unless it is scaled otherwise."""
    lower, mean, upper = (
        f"{scale * end:.{decimals}f}" for end in (interval.lower, interval.mean, interval.upper)
    )
    return f"{mean} [{lower}, {upper}]"


def cell_of_probability(ratio: float) -> str:
    """A probability in such a column: never 0 or 100%, as in sentences, but shorter."""
    return probability(ratio).replace("over ", ">").replace("under ", "<")


def cell_of_verdict(
    below: float, verdict: Verdict, labels: float | None, seconds: float | None, *, is_affordable: bool
) -> str:
    """Probability of being below a threshold, the verdict, and the labels and time until there is one."""
    needs = f" ~{labels:.0f}" if labels else ""
    if labels and seconds is not None:
        needs += f", {duration(seconds)}"
    elif labels and not is_affordable:
        needs += ", >10 y"
    return f"{cell_of_probability(below)}{_VERDICTS[verdict]}{needs}"


def budget_sentence(budget: BudgetState, labels: int, now: float) -> str:
    """What is left of a budget of so many labels a period, and how fast it is spent."""
    renewal = (
        "does not renew" if budget.renews_at is None else f"renews in {duration(budget.renews_at - now)}"
    )
    if budget.is_exhausted:
        return f"Budget exhausted: all {labels:,} labels are spent; it {renewal}."
    sentence = f"{budget.remaining:,} of {labels:,} labels left; the budget {renewal}"
    pace = budget.seconds_per_label(now)
    if math.isfinite(pace):
        sentence += f"; about one label every {duration(pace)} until then"
    if budget.reserve:
        sentence += f"; {budget.reserve:,} of them are reserved for suspected groups"
    return f"{sentence}."


def place(grouping: str, group: str) -> str:
    """A group as people name it; of grouping `all`, all traffic."""
    return "all traffic" if grouping == "all" else f"{grouping} {group}"


def found(snapshot: ModelSnapshot, name: str) -> str:
    """What an assessment has found, and how sure it is; empty where nothing can be said."""
    if (performance := snapshot.performances.get(name)) is not None:
        precision, recall = _precision_and_recall(performance)
        return f"Precision {precision}, recall {recall}"
    if (ensemble := snapshot.ensembles.get(name)) is not None:
        return _of_ensemble(ensemble)
    if (challenge := snapshot.challenges.get(name)) is not None:
        return _of_challenge(challenge)
    if (rates := snapshot.error_rates.get(name)) is not None:
        return _of_error_rates(rates)
    state = snapshot.assessments[name]
    return _of_groups(state, snapshot.groupings.get(state.grouping))


def _of_groups(state: AssessmentSnapshot, grouping: GroupingSnapshot | None) -> str:
    """The result of an estimation, an identification or a comparison."""
    settings = state.settings
    if isinstance(settings, EstimationSettings) and grouping is not None:
        return _most_uncertain(settings, grouping)
    if isinstance(settings, IdentificationSettings) and state.extreme is not None and len(state.groups):
        order = (-state.extreme).argsort(kind="stable")[: settings.top_m]
        names = [f"{state.groups[g]} ({probability(float(state.extreme[g]))})" for g in order]
        return f"{quality(settings).capitalize()}: {', '.join(names)}"
    if state.compared is not None:
        probabilities = {
            "less accurate than": state.compared.below,
            "about as accurate as": state.compared.within,
            "more accurate than": state.compared.above,
        }
        relation = max(probabilities, key=lambda word: probabilities[word])
        sentence = f"{state.compared.first} is {relation} {state.compared.second}"
        return f"{sentence} ({probability(probabilities[relation])})"
    return ""


def _of_error_rates(found: ErrorRatesSnapshot) -> str:
    """The rate in which groups are furthest apart for sure, and which groups these are."""
    rates = {name: rate for name, rate in found.rates.items() if rate.difference is not None}
    if not rates:
        return ""
    name = max(rates, key=lambda each: (rates[each].difference or (0.0,))[0])
    lower, mean, upper = (100 * end for end in rates[name].difference or (0.0, 0.0, 0.0))
    means = rates[name].estimate.mean
    high, low = found.groups[int(np.nanargmax(means))], found.groups[int(np.nanargmin(means))]
    measured = f"{mean:.1f} points [{lower:.1f}, {upper:.1f}]"
    return f"Furthest apart: {name.replace('_', ' ')}, {measured}, highest in {high}, lowest in {low}"


def _of_ensemble(ensemble: EnsembleSnapshot) -> str:
    """Which member is least precise, and what sharing labels has saved."""
    least = int(np.argmin(ensemble.beliefs.mean))
    precision = Interval.at_index(ensemble.beliefs, least)
    least_precise = f"Least precise: {ensemble.members[least]}, {percent_interval(precision)}"
    planned = ensemble.plan.sum()
    left = f"{planned} labels to go" if planned else "every member has enough labels"
    return f"{least_precise}; {left}; sharing labels saved {percent(max(ensemble.saving, 0.0))}"


def _of_challenge(there: ChallengeSnapshot) -> str:
    """Who is better over all traffic, and in how many groups the challenger is worse for sure."""
    better, worse = float(there.better[0]), float(there.worse[0])
    probabilities = {
        f"{there.challenger} is better": better,
        f"{there.challenger} is worse": worse,
        "The two are about as accurate": max(0.0, 1 - better - worse),
    }
    relation = max(probabilities, key=lambda words: probabilities[words])
    lower, upper = there.difference.lower[0], there.difference.upper[0]
    by = f"{100 * there.difference.mean[0]:+.1f} points [{100 * lower:+.1f}, {100 * upper:+.1f}]"
    sentence = f"{relation} ({probability(probabilities[relation])}): {by}"
    least = int(np.argmax(there.worse[1:])) + 1 if len(there.groups) > 1 else 0
    if least and there.worse[least] > max(worse, _EVEN):
        sentence += f"; worse in {there.groups[least]} ({probability(float(there.worse[least]))})"
    return sentence


def _most_uncertain(settings: EstimationSettings, grouping: GroupingSnapshot) -> str:
    """The group of an estimation with the widest interval."""
    estimate = grouping.ece if settings.metric == "calibration" else grouping.accuracy
    least = int((estimate.upper - estimate.lower).argmax())
    return f"Most uncertain: {grouping.groups[least]}, {percent_interval(Interval.at_index(estimate, least))}"


LABELS_CONTRADICT = (
    "Labels contradict the score model, so estimates at this threshold come from labels and their inclusion "
    "probabilities alone."
)


def performance_sentence(there: PerformanceSnapshot) -> str:
    """How a binary classifier does at its threshold."""
    precision, recall = _precision_and_recall(there)
    on = f"At its threshold of {there.threshold:g}, precision on class {there.positive_class}"
    sentences = [f"{on} is {precision}, and recall is {recall}."]
    if not np.isfinite(there.measures["precision"].median):
        sentences.append("No item is predicted positive at this threshold.")
    if there.missed:
        targets = ", and ".join(
            _target(name, there.targets[name], missed) for name, missed in there.missed.items()
        )
        sentences.append(f"{targets[0].upper()}{targets[1:]}.")
    if there.design.disagrees:
        sentences.append(LABELS_CONTRADICT)
    if not there.labels:
        sentences.append("There are no labels yet, so this is estimated from scores alone.")
    return " ".join(sentences)


def _target(measure: str, wanted: float, missed: float) -> str:
    """Whether a target is met."""
    end = "most" if measure == "false_positive_rate" else "least"
    target = f"{measure.replace('_', ' ').replace('f1', 'F1')} of at {end} {100 * wanted:g}%"
    if missed >= _EVEN:
        return f"{target} is missed with a probability of {probability(missed)}"
    return f"{target} is met with a probability of {probability(1 - missed)}"


def _precision_and_recall(there: PerformanceSnapshot) -> tuple[str, str]:
    precision, recall = (Range.if_any(there.measures[name]) for name in ("precision", "recall"))
    return _measured(precision), _measured(recall)


def _measured(interval: Range | None) -> str:
    return "unknown" if interval is None else percent_interval(interval)


def why_next(state: AssessmentSnapshot, grouping: GroupingSnapshot, group: int) -> str:
    """Why the next label request may go to a group."""
    if state.aim is not None and state.aim.shares[group] > 0:
        return f"{_why_policy(state, grouping, group)}; and it is suspected"
    return _why_policy(state, grouping, group)


def _why_policy(state: AssessmentSnapshot, grouping: GroupingSnapshot, group: int) -> str:
    settings = state.settings
    width = 100 * (grouping.accuracy.upper[group] - grouping.accuracy.lower[group])
    share = percent(float(grouping.beliefs.shares[group]))
    if chooser(settings) == "random":
        return f"chosen at random: it has {share} of the traffic"
    if isinstance(settings, IdentificationSettings) and state.extreme is not None:
        sure = probability(float(state.extreme[group]))
        return f"it is the {quality(settings)} with a probability of {sure}"
    if isinstance(settings, ComparisonSettings):
        return f"one of the two compared groups; its interval is {width:.1f} points wide"
    if isinstance(settings, PerformanceSettings | ErrorRateSettings):
        return _why_narrowed(settings, share)
    if settings.metric == "calibration":
        ece = 100 * (grouping.ece.upper[group] - grouping.ece.lower[group])
        return f"the interval of its calibration error is {ece:.1f} points wide, with {share} of the traffic"
    return f"the interval of its accuracy is {width:.1f} points wide, with {share} of the traffic"


def _why_narrowed(settings: PerformanceSettings | ErrorRateSettings, share: str) -> str:
    if isinstance(settings, ErrorRateSettings):
        return f"its {settings.rate.replace('_', ' ')} may be the highest or the lowest, or beyond its limit"
    depends = f"precision and recall depend on how many of these are {settings.positive_class}"
    return f"{depends}; they have {share} of the traffic"
