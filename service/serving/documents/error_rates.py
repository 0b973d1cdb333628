"""Error rates of groups: the documents, made from a snapshot."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from service.domain.assessments import RateName
from service.monitoring.error_rates import ErrorRatesSnapshot
from service.serving.documents.base import Document, Interval, finite_or_none

_MOST_GROUPS = 20


class RateState(Document):
    """One rate of all groups."""

    rate: RateName
    difference: Interval | None = Field(
        description="the highest rate of any group minus the lowest; null with fewer than two groups"
    )
    ratio: Interval | None = Field(description="the lowest rate of any group over the highest; null likewise")
    max_difference: float | None = Field(description="configured")
    min_ratio: float | None = Field(description="configured")
    differs_too_much: bool = Field(description="whether the whole interval is above `max_difference`")
    ratio_too_low: bool = Field(description="whether the whole interval is below `min_ratio`")
    difference_confirmed: bool = Field(description="whether anytime-valid evidence confirms the difference")
    ratio_confirmed: bool = Field(description="whether it confirms the ratio")


class RateGroup(Document):
    """The rates of one group."""

    group: str
    share: float = Field(description="of all traffic")
    labels: float = Field(description="effective number of labels")
    rates: dict[RateName, Interval] = Field(
        description="by rate; the intervals of all groups hold at once. Rates that count no item are left out"
    )
    limits: dict[RateName, float] = Field(
        description="configured, by rate: a minimum of `true_positive_rate` and `precision`, else a maximum"
    )
    violated: list[RateName] = Field(
        description="rates beyond the limit: the whole interval is, or evidence says so"
    )
    confirmed: list[RateName] = Field(description="those of which anytime-valid evidence confirms it")


class ErrorRateState(Document):
    """Error rates of the groups of one grouping, for one class against the rest."""

    positive_class: str
    rates: list[RateState]
    groups: list[RateGroup] = Field(
        description="those beyond a limit first, then those with the most traffic, at most 20"
    )


def error_rate_state(found: ErrorRatesSnapshot) -> ErrorRateState:
    """What is known of the error rates of one grouping."""
    beyond = np.sum([rate.violated for rate in found.rates.values()], axis=0)
    shown = np.lexsort((-found.shares, -beyond))[:_MOST_GROUPS]
    return ErrorRateState(
        positive_class=found.positive_class,
        rates=[
            RateState.of(
                rate,
                rate=name,
                difference=Interval.of_ends(rate.difference),
                ratio=Interval.of_ends(rate.ratio),
                difference_confirmed=rate.proof is not None and rate.proof.difference_confirmed,
                ratio_confirmed=rate.proof is not None and rate.proof.ratio_confirmed,
            )
            for name, rate in found.rates.items()
        ],
        groups=[_group(found, int(group)) for group in shown],
    )


def _group(found: ErrorRatesSnapshot, group: int) -> RateGroup:
    rates = {name: Interval.if_any(rate.estimate, group) for name, rate in found.rates.items()}
    return RateGroup(
        group=found.groups[group],
        share=float(found.shares[group]),
        labels=float(found.labels[group]),
        rates={name: interval for name, interval in rates.items() if interval is not None},
        limits={
            name: limit
            for name, rate in found.rates.items()
            if (limit := finite_or_none(rate.limits[group])) is not None
        },
        violated=[name for name, rate in found.rates.items() if rate.violated[group]],
        confirmed=[name for name, rate in found.rates.items() if rate.proof and rate.proof.confirmed[group]],
    )
