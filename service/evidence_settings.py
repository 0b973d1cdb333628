"""Settings of evidence that may be looked at any time; frozen."""

from __future__ import annotations

from pydantic import Field

from service.setting_types import Frozen


class EvidenceSettings(Frozen):
    """How often evidence may be wrong, however often one looks."""

    alpha: float = Field(
        default=0.05,
        ge=1e-6,
        le=0.5,
        description="expected share of false ones among the groups of a grouping that evidence names at one "
        "time; and the probability that a group's confidence sequence ever fails to hold its accuracy",
    )
    run_length: float = Field(
        default=10_000.0,
        ge=10,
        allow_inf_nan=False,
        description="labels of a grouping among which one decline is announced that is none, on average, or "
        "more labels",
    )
