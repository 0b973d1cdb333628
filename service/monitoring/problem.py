"""What can be wrong with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from service.monitoring.history import Fault, Since

Severity = Literal["critical", "warning", "info"]
"""As that of alerts: act now; act on the next working day; good to know."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)

ProblemKind = Literal[
    "estimates_stale",
    "accuracy_low",
    "less_accurate",
    "performance_target_missed",
    "error_rate_violated",
    "error_rates_differ",
    "miscalibrated",
    "member_target_missed",
    "challenger_worse",
    "drift",
    "vendor_unreliable",
    "labels_stale",
    "requests_unanswered",
    "answers_missing",
    "budget_exhausted",
    "performance_stale",
    "times_clipped",
    "values_folded",
    "challenger_better",
    "performance_design_disagrees",
    "performance_misfit",
    "pool_exhausted",
]

STALE_SECONDS = 300.0
"""Age from which estimates are out of date, as in the alert."""

PROBLEM_KINDS: tuple[ProblemKind, ...] = get_args(ProblemKind)
"""In the order in which those of one severity are listed."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong, with what is known of it; what does not apply is None or empty."""

    kind: ProblemKind
    severity: Severity
    # alerts that fire about it, the most severe first; empty of a note, about which none does
    alerts: tuple[str, ...]
    grouping: str = ""
    group: str = ""
    subject: str = ""  # an assessment, an attribute, a vendor, or the direction of clipped times
    part: str = ""  # a measure, or a member of an ensemble
    mix: str = ""  # what has drifted most, as in `GroupingDrift.mixes`
    probability: float | None = None  # posterior probability that the threshold is violated
    share: float | None = None  # of the traffic
    labels: float | None = None
    value: tuple[float, float, float] | None = None  # lower end, mean (of performance: median) and upper end
    mass: float = 0.95  # probability inside that interval
    groups: int = 1  # that the interval is adjusted for
    limit: float | None = None  # the threshold that is violated
    log10_e: float | None = None  # of the e-value that confirms it
    amount: float | None = None  # a drift score, a share, or a number of requests or of further groups
    at: float | None = None  # seconds since the epoch: of a change, of the last label or estimate
    since: Since | None = None  # None where nothing but the list of problems knows

    @property
    def fault(self) -> Fault:
        """What tells it from the other problems of a model."""
        return (self.kind, self.grouping, self.group, *filter(None, (self.subject, self.part)))
