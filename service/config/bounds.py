"""Bounds on memory and message sizes; frozen."""

from __future__ import annotations

import math

from pydantic import Field

from service.config.types import Frozen


class Bounds(Frozen):
    """Limits on memory and message sizes; each has a metric that shows when it is reached."""

    pool_items: int = Field(default=50_000, ge=1)
    """pooled items per model and partition. Each group has room for twice the labels of the budgets that may
    use it, and for at least 16; if that is too much in total, it is halved until all groups fit"""
    attribute_values: int = Field(default=1_000, ge=1)
    """values of one attribute that have groups of their own, chosen by traffic; all others share the group
    `__other__`"""
    table_bytes: int = Field(default=268_435_456, ge=1)
    """maximum size of one model's traffic tables in one partition; `credence check` prints their sizes"""
    attribute_length: int = Field(default=64, ge=1)
    """maximum length of an attribute value, in characters"""
    further_attribute_bytes: int = Field(default=512, ge=0)
    """bytes of attributes without a grouping that are stored with a pooled item and its outcome. If you add a
    grouping by such an attribute, existing labels count for it"""
    lateness_hours: float | None = Field(default=24.0, ge=0)
    """maximum age of a prediction's time relative to the time of its Kafka record; older times are set to the
    limit. Raise it for backfills; null is no limit"""
    message_bytes: int = Field(default=1_048_576, ge=256)
    """maximum size of a record's value"""
    batch_bytes: int | None = Field(default=None, ge=1_048_576)
    """maximum size of a record batch after decompression; a larger or unreadable batch becomes one dead
    letter. Needs kafka-python 3.0; default: no limit"""
    payload_bytes: int = Field(default=16_384, ge=0)
    """maximum size of an inline payload that is stored in the pool"""
    probability_classes: int = Field(default=200, ge=0)
    """maximum number of classes for which sums of class probabilities are stored"""
    correction_days: float = Field(default=30.0, gt=0, le=3_650)
    """how long a label can be corrected or retracted"""
    outcomes: int = Field(default=1_000_000, ge=1_000)
    """approximate maximum number of labelled outcomes that are kept per model"""
    join_items: int = Field(default=100_000, ge=100)
    """predictions per model that wait for unrequested labels; with more traffic it is a random sample"""
    join_days: float = Field(default=45.0, gt=0, le=3_650)
    """how long a prediction waits for an unrequested label"""
    metric_groups: int = Field(default=200, ge=1)
    """groups per grouping with their own metrics; the rest are exported as `other`"""

    @property
    def lateness_seconds(self) -> float:
        """The bound on lateness in seconds; infinite without one."""
        return math.inf if self.lateness_hours is None else 3_600 * self.lateness_hours
