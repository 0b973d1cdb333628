"""What can be wrong with the pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from service.monitoring.problem import Severity


@dataclass(frozen=True)
class PipelineProblem:
    """One thing that is wrong.

    Attributes:
        key: the same for the same problem at any time, such as `consumer_paused:predictions`.
        alert: that reports it, after a while; None if there is none.
        since: when it began, seconds since the epoch; None if unknown.
        sentence: what is wrong, how bad it is, and what to do.
    """

    key: str
    severity: Severity
    alert: str | None
    since: float | None
    sentence: str
