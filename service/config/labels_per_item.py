"""Settings of how many people label an item, and how reliable they are; frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.config.types import Frozen, Probability

_MOST = 9
_RELIABILITY = 0.89  # if it is not set, of two classes: what estimates expect, too


class GoldSettings(Frozen):
    """Items whose true class is known, requested among others to learn how often people are wrong."""

    file: str
    """file of gold items, in the format of `credence predictions send` (.jsonl, .csv, .parquet), with a
    further column `true_class`. The process that requests labels reads it when it starts"""
    share: float = Field(default=0.02, gt=0, le=0.5)
    """share of the requests for new items that are for gold items; the label budget pays for them"""


class LabelsPerItem(Frozen):
    """How many people label an item. Labels may then be wrong; otherwise each is the truth."""

    least: int = Field(default=1, ge=1, le=_MOST)
    """people who label every item"""
    most: int = Field(default=1, ge=1, le=_MOST)
    """maximum number of people who label an item, one after the other. Items are labelled again if a label
    differs from the prediction, and at random (`audit_share`), until most of this number agree"""
    audit_share: Probability = 0.15
    """share of the items that are labelled again although all labels are the predicted class, so that it is
    known how often people are wrong there"""

    reliability: float | None = Field(default=None, ge=0.6, le=0.999)
    """expected share of items about which a person is right, before any label, of all difficulties (default:
    0.78 to 0.89, the fewer the more classes). If you set it, labels may be wrong with `most: 1` too"""

    gold: GoldSettings | None = None
    """items whose true class is known. If you set it, labels may be wrong with `most: 1` too"""

    max_error: Annotated[float, Field(gt=0, lt=0.5)] | Literal["learned"] | None = None
    """if labels may be wrong: upper bound of the share of wrong labels, both of correct and of incorrect
    predictions, in every group and at any time. Evidence allows for so many; without it there is none. With
    `learned` the bound is learned from the labels of `gold` items. For evidence on error rates it has to be a
    number, and to hold of positive and other items, selected or not, by themselves"""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.most < self.least:
            raise ValueError(f"`most` ({self.most}) is below `least` ({self.least})")
        if self.learns_bound and self.gold is None:
            raise ValueError("`max_error: learned` requires `gold`")
        return self

    @property
    def several(self) -> bool:
        """Whether an item may be labelled by more than one person."""
        return self.most > 1

    @property
    def has_evidence(self) -> bool:
        """Whether evidence is possible: it is known how many labels are wrong at most."""
        return not self.may_err or self.max_error is not None

    @property
    def wrong_labels(self) -> float:
        """The share of labels that evidence takes to be wrong, at most, whether predictions are correct.

        A learned one is not known here.
        """
        return self.max_error if self.may_err and isinstance(self.max_error, float) else 0.0

    @property
    def stated_bound(self) -> float | None:
        """The same; None where none is stated, and so no evidence that needs it from the first label."""
        return None if self.learns_bound or not self.has_evidence else self.wrong_labels

    @property
    def learns_bound(self) -> bool:
        """Whether it is learned how many labels are wrong at most."""
        return self.max_error == "learned"

    @property
    def may_err(self) -> bool:
        """Whether labels may be wrong."""
        return self.several or self.reliability is not None or self.gold is not None

    def items_per_label(self, accuracy: float) -> float:
        """New items per requested label, on average, of a model of this accuracy with two classes.

        Further labels of an item, and labels of gold items, are the rest.
        """
        right = _RELIABILITY if self.reliability is None else self.reliability
        cases = [(accuracy, right), (1 - accuracy, 1 - right)]  # predictions, and labels that agree with them
        audits = [(True, self.audit_share), (False, 1 - self.audit_share)]
        labels = sum(
            share * audited * self._mean_labels(agreeing, (), is_audited=is_audited)
            for share, agreeing in cases
            for is_audited, audited in audits
        )
        return (1 - (0.0 if self.gold is None else self.gold.share)) / labels

    def _mean_labels(self, agreeing: float, given: tuple[bool, ...], *, is_audited: bool) -> float:
        """Labels that an item gets beyond those `given`: whether each agrees with the prediction."""
        if not self.wants_another(given, predicted=True, is_audited=is_audited):
            return 0.0
        agree, differ = (
            self._mean_labels(agreeing, (*given, label), is_audited=is_audited) for label in (True, False)
        )
        return 1 + agreeing * agree + (1 - agreeing) * differ

    def wants_another(self, labels: Sequence[Hashable], predicted: Hashable, *, is_audited: bool) -> bool:
        """Whether one more person is asked about an item, given the classes of its labels so far."""
        if len(labels) < self.least:
            return True
        if len(labels) >= self.most or not (is_audited or any(label != predicted for label in labels)):
            return False
        # Further labels cannot outvote most of all that are possible.
        return 2 * max(Counter(labels).values()) <= self.most
