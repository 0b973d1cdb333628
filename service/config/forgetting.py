"""Settings of forgetting: how much labels from before a change count; frozen."""

from __future__ import annotations

from pydantic import Field

from service.config.types import Frozen

RUN_LENGTH_OF_SAMPLES = 5_000
"""Default of `forgetting.run_length` where labels come of an even sample of traffic."""


class ForgettingSettings(Frozen):
    """How much labels from before a change count; combines with `label_half_life_days`."""

    after_change: bool = True
    """whether labels are down-weighted by the probability that the accuracy has changed since"""
    run_length: int = Field(default=500, ge=100)
    """expected number of a group's labels between two changes of its accuracy; 5,000 by default if
    `unrequested_labels.items` is `census` or `sampled`, which bring many labels. With a shorter run length,
    intervals react to a change sooner, but are wider while nothing changes"""
