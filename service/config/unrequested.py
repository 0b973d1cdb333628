"""Settings of labels that nobody requested; frozen."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from service.config.types import Frozen

ChosenBy = Literal["census", "sampled", "unknown"]


class UnrequestedLabels(Frozen):
    """Labels that arrive without a request: chargebacks, returns, or a nightly table of true classes."""

    items: ChosenBy
    """which items get such a label. `census`: all, sooner or later. `sampled`: a random sample; each label
    states the probability of its item. `unknown`: any; what has no label may be what the model gets wrong"""
    complete_share: float = Field(default=0.99, gt=0.5, le=1)
    """with `census`: the predictions of an hour count as soon as this share of them has a label"""
    wait_days: float | None = Field(default=None, gt=0, le=3_650)
    """the predictions of an hour count after so many days at the latest, with the labels that there are.
    At most `bounds.join_days`, the default"""
    sampling_rate: float | None = Field(default=None, gt=0, le=1)
    """with `sampled`: the lowest probability of an item to be in the sample"""

    @model_validator(mode="after")
    def _rate_where_sampled(self) -> Self:
        if (self.sampling_rate is None) == (self.items == "sampled"):
            raise ValueError("`sampling_rate` is required with `items: sampled`, and only then")
        return self
