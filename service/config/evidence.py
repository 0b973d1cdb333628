"""Settings of evidence that may be looked at any time; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.types import Frozen


class EvidenceSettings(Frozen):
    """How often evidence may be wrong, however often one looks."""

    alpha: float = Field(
        default=0.05,
        ge=1e-6,
        le=0.5,
        description="expected share of false ones among all that evidence confirms about a model at one "
        "time, and the probability that it ever confirms anything while nothing is wrong; also the "
        "probability that a group's confidence sequence ever fails to hold its accuracy",
    )
