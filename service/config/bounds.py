"""Bounds on memory and message sizes; frozen."""

from __future__ import annotations

import math

from pydantic import Field

from service.config.types import Frozen


class Bounds(Frozen):
    """Bounds on memory and message sizes; each has a metric that tells when it is hit."""

    pool_items: int = Field(default=50_000, ge=1)
    """pooled items per model and partition; a group has twice the labels of the budgets that may go to it, at
    least 16, halved until all groups have room"""
    attribute_values: int = Field(default=1_000, ge=1)
    """values of one attribute that are told apart, those with most traffic; the others share the group
    `__other__`"""
    table_bytes: int = Field(default=268_435_456, ge=1)
    """most bytes that the tables of one model's traffic may take in one partition; `credence check` lists
    them"""
    attribute_length: int = Field(default=64, ge=1)
    """longest attribute value, in characters"""
    further_attribute_bytes: int = Field(default=512, ge=0)
    """names and values of attributes that no grouping uses, kept with a pooled item and its outcome so that
    labels count when a grouping by them is added"""
    lateness_hours: float | None = Field(default=24.0, ge=0)
    """how far the time that a prediction claims may lie behind that of its record; an older one counts as of
    the bound. Raise it for backfills; not bounded if null"""
    message_bytes: int = Field(default=1_048_576, ge=256)
    """longest record value"""
    batch_bytes: int | None = Field(default=None, ge=1_048_576)
    """largest record batch after decompression; a larger one, or one that cannot be read, becomes one dead
    letter. Works with kafka-python 3.0 alone. Not bounded if absent"""
    payload_bytes: int = Field(default=16_384, ge=0)
    """longest inline payload kept in the pool"""
    probability_classes: int = Field(default=200, ge=0)
    """class-probability sums are kept for models with at most so many"""
    correction_days: float = Field(default=30.0, gt=0, le=3_650)
    """how long an answer may be corrected or retracted"""
    outcomes: int = Field(default=1_000_000, ge=1_000)
    """outcomes kept per model, about"""
    metric_groups: int = Field(default=200, ge=1)
    """groups per grouping with metrics of their own; the rest are `other`"""

    @property
    def lateness_seconds(self) -> float:
        """The bound on lateness in seconds; infinite without one."""
        return math.inf if self.lateness_hours is None else 3_600 * self.lateness_hours
