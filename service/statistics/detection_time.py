"""Days until a fault of one group is found: by its posterior, and by anytime-valid evidence.

A group's accuracy drops. Two rules find the fault:

- the **alert**: the posterior gives the probability `confidence` or more to an accuracy below the threshold,
  and the group has `min_labels` effective labels;
- the **confirmation**: an e-value, weighted for e-BH, reaches 1 / alpha (`e_processes.py`, `e_detector.py`).

The mean time is known in closed form to first order: log(threshold of the rule) / growth of the log evidence
per label, with the divergence KL(after || before) as the growth (Wald, Sequential Analysis, 1947; Lorden,
Annals of Mathematical Statistics 1971). Quantiles, few labels, fading labels and priors need more. What a
rule says depends on the labels since the fault, and on the wrong ones among them (`detection_rules.py`, with
the service's own change points and priors). So it has a boundary, the least number of wrong labels at which
it fires, and the distribution of the time at which the number reaches it follows exactly
(`first_passage.py`).

Change points make the alert faster than a half-life alone: as soon as a change is more probable than not, at
about log(run_length) / KL labels, labels from before it count little, whatever their age.

Labels become days by the rate that the policy gives the group, and by the age of drawn items: with a
half-life of draws of H hours, the share 2^(-t / H) of the labels requested t hours after the fault is of
predictions from before it. The time that people take to answer is not included: add it.

`tests/simulation/test_announced_detection.py` compares this with simulations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy import special

from service.domain.arrays import Flags, Floats
from service.statistics.change_points import SUSPECTED
from service.statistics.detection_rules import EvidenceRule, Posterior, PosteriorRule, Seen
from service.statistics.first_passage import faded_share, first_passage

PolicyFamily = Literal["even", "traffic", "adaptive"]
"""How labels are divided among groups: evenly, by traffic, or to the group that seems the weakest."""

HORIZON_DAYS: Final = 730.0  # what takes longer is reported as never
_MOST_LABELS: Final = 10_000.0  # of one group, after which nothing is found either
_SINGLE: Final = 24  # first labels, with a look at each; then looks are a share of the labels apart
_GROWTH: Final = 1.08
_BISECTIONS: Final = 10
_COURSES: Final = 4  # times that days and rates are computed from each other
_NODES: Final[Floats] = special.ndtri((np.arange(31) + 0.5) / 31)
_LATE: Final = 0.9
_WINDOW: Final = 0.4
"""Run lengths of labels that change points leave, about: a streak of wrong labels among the latest ones is
seen, however many came before it."""

_CLUSTERING: Final = 1.35
_SCATTER: Final = 0.4
"""Median and log deviation of the days that real labels take for a day of even ones. Wrong labels cluster by
chance, before the fault and after it, which looks like changes and widens the posterior; so only where
changes are looked for. Measured over the grid of `tests/simulation/test_announced_detection.py`."""


@dataclass(frozen=True)
class Fault:
    """A drop of one group's accuracy."""

    before: float
    drop: float
    group: int = 0  # which one, counted from 0

    @property
    def after(self) -> float:
        """Its accuracy from then on."""
        return self.before - self.drop


@dataclass(frozen=True)
class Labelling:
    """Where labels come from, and how long they count."""

    shares: Floats  # traffic of every group, summing to 1 [G]
    per_day: float
    policy: PolicyFamily = "even"
    reserve: float = 0.0  # share of the labels that is kept for groups suspected to have changed
    half_life_days: float | None = None
    draw_half_life_hours: float | None = 24.0
    run_length: float | None = 500.0  # labels of a group between two changes; None without change points
    days_before: float = 30.0  # for which labels have been requested when the fault begins

    def rate(self, group: int) -> float:
        """Labels a day of a group that is like the others."""
        of_policy = float(self.shares[group]) if self.policy == "traffic" else 1 / len(self.shares)
        return self.per_day * (1 - self.reserve) * of_policy


@dataclass(frozen=True)
class Rules:
    """When a fault counts as found."""

    threshold: float  # of the accuracy
    confidence: float = 0.95  # of the alert
    min_labels: float = 10.0  # effective ones that the alert needs
    alpha: float = 0.05  # of the evidence
    reference_labels: int = 100  # first labels of a group, by which evidence measures a decline


@dataclass(frozen=True)
class Delay:
    """Days from a fault until it is found; infinite if that is never, or after `HORIZON_DAYS`."""

    median: float
    late: float  # 90% quantile


@dataclass(frozen=True)
class Detection:
    """How soon each rule finds a fault."""

    alert: Delay
    confirmed: Delay


_NEVER: Final = Delay(np.inf, np.inf)


@dataclass(frozen=True)
class _Course:
    """Looks at one group after its fault [L]."""

    labels: Floats  # labels since the fault, whole numbers
    days: Floats
    fresh: Floats  # of these labels, those of predictions since the fault


def days_to_detection(fault: Fault, labelling: Labelling, rules: Rules) -> Detection:
    """Median and 90% quantile of the days until a fault of one group is found, by each rule.

    The alert never finds a fault that leaves the accuracy at or above the threshold.

    Raises:
        ValueError: an accuracy or a probability is not within 0 and 1, or there are no labels.
    """
    _check(fault, labelling, rules)
    rate = labelling.rate(fault.group)
    if rate == 0:
        return Detection(_NEVER, _NEVER)
    posterior = PosteriorRule(
        accuracy=fault.before,
        threshold=rules.threshold,
        groups=len(labelling.shares),
        labels_before=rate * labelling.days_before,
        days_before=labelling.days_before,
        half_life_days=labelling.half_life_days,
        run_length=labelling.run_length,
    )
    course = _course(fault, labelling, posterior, rate)
    evidence = EvidenceRule(
        accuracy=fault.before,
        threshold=rules.threshold,
        alpha=rules.alpha,
        groups=len(labelling.shares),
        labels_before=rate * labelling.days_before,
        reference=rules.reference_labels,
    )
    if len(course.days) == 0:
        return Detection(_NEVER, _NEVER)
    alert = _NEVER if fault.after >= rules.threshold else _alert(fault, labelling, rules, posterior, course)
    return Detection(alert, _confirmed(fault, evidence, course))


def _alert(
    fault: Fault, labelling: Labelling, rules: Rules, posterior: PosteriorRule, course: _Course
) -> Delay:
    seen = _seen(course, posterior)
    least = _least_errors(
        lambda errors: posterior.posterior(errors, seen).below >= rules.confidence, len(seen.days)
    )
    # With far more wrong labels fewer labels count; nearly all paths that fire do so near the boundary.
    enough = posterior.posterior(np.minimum(least, 1.0), seen).labels >= rules.min_labels
    fresh = np.diff(course.fresh, prepend=0.0)
    kept = np.ones(len(fresh))
    if labelling.half_life_days is not None:
        kept *= 0.5 ** (np.diff(course.days, prepend=0.0) / labelling.half_life_days)
    if labelling.run_length is not None:
        kept *= np.exp(-fresh / (_WINDOW * labelling.run_length))
    counted = np.zeros(len(fresh))
    for look, (left, new) in enumerate(zip(kept, fresh, strict=True)):
        counted[look] = left * (counted[look - 1] if look else 0.0) + faded_share(left) * new
    boundary = np.where(enough, least, np.inf) * counted
    labels = np.diff(course.labels, prepend=0.0)
    found = first_passage(labels, fresh / labels * (1 - fault.after), kept, boundary)
    return _delay(course, found if labelling.run_length is None else _scattered(course, found))


def _confirmed(fault: Fault, evidence: EvidenceRule, course: _Course) -> Delay:
    boundary = _least_errors(lambda e: evidence.log_evidence(e, course.labels) >= 0, len(course.days))
    labels = np.diff(course.labels, prepend=0.0)
    errors = 1 - fault.before + fault.drop * np.diff(course.fresh, prepend=0.0) / labels
    return _delay(course, first_passage(labels, errors, np.ones(len(labels)), boundary * course.labels))


def _least_errors(fires: Callable[[Floats], Flags], looks: int) -> Floats:
    """The least share of wrong labels since the fault at which a rule fires; infinite for none [L]."""
    low, high = np.zeros(looks), np.ones(looks)
    ever = fires(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        found = fires(middle)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.where(ever, high, np.inf)


def _course(fault: Fault, labelling: Labelling, posterior: PosteriorRule, rate: float) -> _Course:
    """Looks until the horizon: the group's rate depends on what its labels say, and they on the time."""
    most = min(labelling.per_day * HORIZON_DAYS, _MOST_LABELS)
    later = _SINGLE * _GROWTH ** np.arange(1, max(1, np.log(most / _SINGLE) / np.log(_GROWTH)))
    labels = np.unique(np.round(np.concatenate((np.arange(1.0, _SINGLE + 1), later)))).astype(np.float64)
    new = np.diff(labels, prepend=0.0)
    rates = np.full(len(labels), rate)
    for _ in range(_COURSES):
        days = np.cumsum(new / rates)
        course = _Course(labels, days, _fresh(labels, days, labelling.draw_half_life_hours))
        if labelling.policy != "adaptive" and not labelling.reserve:
            break
        errors = np.full(len(labels), 1 - fault.after)
        rates = _rates(labelling, posterior, posterior.posterior(errors, _seen(course, posterior)), rate)
    inside = course.days <= HORIZON_DAYS
    return _Course(labels[inside], course.days[inside], course.fresh[inside])


def _rates(labelling: Labelling, rule: PosteriorRule, found: Posterior, rate: float) -> Floats:
    """Labels a day that the group gets at every look [L]."""
    of_policy = np.full(len(found.mean), rate)
    if labelling.policy == "adaptive":
        healthy = rule.healthy
        drawn = found.mean + found.deviation * _NODES[:, None]
        weakest = special.ndtr((healthy.mean - drawn) / healthy.deviation) ** (len(labelling.shares) - 1)
        of_policy = labelling.per_day * (1 - labelling.reserve) * weakest.mean(axis=0)
    suspected = (found.changed >= SUSPECTED) | (found.below >= 0.5)  # noqa: PLR2004 - more probable than not
    of_policy = np.maximum(of_policy, 1e-6 * rate)  # no group is left out for good
    return np.asarray(of_policy + labelling.per_day * labelling.reserve * suspected, np.float64)


def _fresh(labels: Floats, days: Floats, draw_half_life_hours: float | None) -> Floats:
    """Labels of predictions since the fault [L]: the draws of a day are partly of older predictions."""
    if draw_half_life_hours is None:
        return labels
    decay = np.log(2) * 24 / draw_half_life_hours
    begins = np.append(0.0, days[:-1])
    length = np.maximum(days - begins, 1e-12)
    old = np.exp(-decay * begins) * -np.expm1(-decay * length) / (decay * length)
    return np.asarray(np.cumsum(np.diff(labels, prepend=0.0) * (1 - old)), np.float64)


def _seen(course: _Course, posterior: PosteriorRule) -> Seen:
    return Seen(course.fresh, posterior.labels_before + course.labels - course.fresh, course.days)


def _delay(course: _Course, found: Floats) -> Delay:
    return Delay(*(_quantile(course.days, found, share) for share in (0.5, _LATE)))


def _scattered(course: _Course, found: Floats) -> Floats:
    """The distribution of days, if every day of even labels takes a few of real ones [L]."""
    factors = _CLUSTERING * np.exp(_SCATTER * _NODES[:, None])
    spread = np.interp(np.log(course.days) - np.log(factors), np.log(course.days), found, left=0.0)
    return np.asarray(spread.mean(axis=0), np.float64)


def _quantile(days: Floats, found: Floats, share: float) -> float:
    look = int(np.searchsorted(found, share))
    if look == len(found):
        return np.inf
    before, day = (found[look - 1], days[look - 1]) if look else (0.0, 0.0)
    return float(day + (days[look] - day) * (share - before) / (found[look] - before))


def _check(fault: Fault, labelling: Labelling, rules: Rules) -> None:
    for name, value in (
        ("accuracy before", fault.before),
        ("accuracy after", fault.after),
        ("threshold", rules.threshold),
        ("confidence", rules.confidence),
        ("alpha", rules.alpha),
    ):
        if not 0 < value < 1:
            raise ValueError(f"{name} of {value:g} is not strictly within 0 and 1")
    if not 0 <= labelling.reserve < 1:
        raise ValueError(f"a reserve of {labelling.reserve:g} is not in [0, 1)")
    if not labelling.per_day > 0:
        raise ValueError(f"{labelling.per_day:g} labels a day find nothing")
