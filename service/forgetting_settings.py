"""Settings of what is forgotten after a change; frozen."""

from __future__ import annotations

from pydantic import Field

from service.setting_types import Frozen


class ForgettingSettings(Frozen):
    """What labels from before a change of a group's accuracy still count; beside `label_half_life_days`."""

    after_change: bool = Field(
        default=True,
        description="whether they lose weight: the more, the surer it is that the accuracy changed since",
    )
    run_length: int = Field(
        default=10_000,
        ge=100,
        description="labels of a group that are expected from one change to the next; a healthy group gets "
        "about so many labels until a change is seen that never was",
    )
