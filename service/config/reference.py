"""Settings of what "now" is compared with; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.types import Frozen


class ReferenceSettings(Frozen):
    """What "now" is compared with, unless `credence reference set` has set a window of time."""

    labels: int = Field(
        default=100,
        ge=1,
        description="the first so many labels of every group are the reference, those that the group's "
        "grouping asked for",
    )
