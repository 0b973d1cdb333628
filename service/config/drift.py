"""Settings of how recent traffic is compared with a reference; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.defaults import REFERENCE_PREDICTIONS
from service.config.types import Frozen, Probability


class DriftSettings(Frozen):
    """How recent traffic is compared with a reference, without labels, and what suspicion does."""

    window_hours: float = Field(
        default=24.0,
        gt=0,
        allow_inf_nan=False,
        description="how far back traffic is recent; whole days leave out differences of day and night",
    )
    reference_predictions: int = Field(
        default=REFERENCE_PREDICTIONS,
        ge=1,
        description="recent traffic is compared with the first so many predictions, and no fewer than come "
        "in window_hours, unless `credence reference set` has set a window of time",
    )
    max_distance: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="a group has drifted when its scores, predicted classes or attributes are surely farther "
        "from the reference, as a Jensen-Shannon distance: 0 is the same, 1 is nothing in common",
    )
    label_share: Probability = Field(
        default=0.2,
        description="this share of every assessment's requests goes to groups of its grouping that have "
        "drifted, while any has; 0 leaves all to the policy",
    )

    @property
    def window_seconds(self) -> float:
        """How far back traffic is recent."""
        return self.window_hours * 3_600
