"""Settings of an assessment's label budget; frozen."""

from __future__ import annotations

from pydantic import Field, model_validator

from service.config.types import Frozen

_BURST = 0.1
_RESERVE = 0.2


class Budget(Frozen):
    """Number of labels that an assessment may use."""

    labels: int = Field(ge=1)
    """maximum number of labels, including open requests"""
    per_days: float | None = Field(default=None, ge=0.0001, le=3_650)
    """period in days (UTC) after which the budget renews; default: never, and the budget is spent as fast as
    requests are answered"""
    burst: float | None = Field(default=None, gt=0, le=1)
    """share of a renewing budget that can be spent at once; the rest is spread over the period (default:
    0.1)"""
    reserve: float | None = Field(default=None, ge=0, lt=1)
    """share of a renewing budget that only suspected groups can use: groups that have drifted or changed, or
    are estimated, but not confirmed, to violate a threshold (default: 0.2)"""

    @model_validator(mode="after")
    def _is_paced_by_period(self) -> Budget:
        for key, share in (("burst", self.burst), ("reserve", self.reserve)):
            if self.per_days is None and share is not None:
                raise ValueError(f"`{key}` requires `per_days`: it is a share of the labels of a period")
        return self

    @property
    def burst_labels(self) -> float:
        """Labels of a period that may be spent at once."""
        return max(1.0, self.labels * (_BURST if self.burst is None else self.burst))

    @property
    def reserved_labels(self) -> int:
        """Labels of a period that only suspected groups may get; one at least is left for any group."""
        return min(self.labels - 1, round(self.labels * (_RESERVE if self.reserve is None else self.reserve)))
