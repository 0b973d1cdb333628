"""Settings of what is forgotten after a change; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.defaults import RUN_LENGTH
from service.config.types import Frozen


class ForgettingSettings(Frozen):
    """What labels from before a change of a group's accuracy still count; beside `label_half_life_days`."""

    after_change: bool = Field(
        default=True,
        description="whether they are down-weighted by the probability that the accuracy has changed since",
    )
    run_length: int = Field(
        default=RUN_LENGTH,
        ge=100,
        description="expected labels of a group between two changes of its accuracy; the shorter, the sooner "
        "intervals allow for a change, and the wider they are while nothing changes",
    )
