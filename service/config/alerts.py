"""Thresholds of alerts about a model; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.types import Frozen, Probability


class AlertSettings(Frozen):
    """Thresholds of alerts."""

    min_accuracy: Probability | None = None
    """minimum accuracy of every group, except score bins: low scores are expected to be less accurate"""
    max_ece: Probability | None = None
    """maximum expected calibration error of every group, except groups by votes of other classifiers"""
    min_reliability: Probability | None = None
    """where labels may be wrong: minimum share of the model's items about which the people of a vendor are
    right"""
    min_labels: float = Field(default=10.0, ge=0)
    """effective labels that a group needs before it can violate or meet a threshold; twice as many for
    calibration"""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """posterior probability at which a threshold counts as violated, or met"""
