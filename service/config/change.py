"""Settings of how a model's changes are noticed, and of what counts after one; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.types import Frozen, Probability


class ReferenceSettings(Frozen):
    """What "now" is compared with, unless `credence reference set` has set a window of time."""

    labels: int = Field(default=100, ge=1)
    """the first so many labels of every group are the reference, those that the group's grouping asked for"""


class EvidenceSettings(Frozen):
    """How often evidence may be wrong, however often one looks."""

    alpha: float = Field(default=0.05, ge=1e-6, le=0.5)
    """expected share of false ones among all that evidence confirms about a model at one time, and the
    probability that it ever confirms anything while nothing is wrong; also the probability that a group's
    confidence sequence ever fails to hold its accuracy"""


class DriftSettings(Frozen):
    """How recent traffic is compared with a reference, without labels, and what suspicion does."""

    window_hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """how far back traffic is recent; whole days leave out differences of day and night"""
    reference_predictions: int = Field(default=10_000, ge=1)
    """recent traffic is compared with the first so many predictions, and no fewer than come in window_hours,
    unless `credence reference set` has set a window of time"""
    max_distance: float = Field(default=0.1, gt=0, lt=1)
    """Jensen-Shannon distance from the reference, beyond noise, above which a group has drifted: of its
    scores, predicted classes or attributes; 0 is the same, 1 is nothing in common"""
    label_share: Probability = 0.2
    """this share of every assessment's requests goes to groups of its grouping that have drifted, while any
    has; 0 leaves all to the policy"""

    @property
    def window_seconds(self) -> float:
        """How far back traffic is recent."""
        return self.window_hours * 3_600


class ForgettingSettings(Frozen):
    """What labels from before a change of a group's accuracy still count; beside `label_half_life_days`."""

    after_change: bool = True
    """whether they are down-weighted by the probability that the accuracy has changed since"""
    run_length: int = Field(default=500, ge=100)
    """expected labels of a group between two changes of its accuracy; the shorter, the sooner intervals allow
    for a change, and the wider they are while nothing changes"""
