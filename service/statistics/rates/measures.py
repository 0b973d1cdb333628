"""The rates of a class against the rest: which items each counts, of which items.

Every rate is a quotient of two shares of a group's items: those in the numerator, of those in the
denominator. Names and definitions are those of fairlearn (`fairlearn.metrics`); its precision is that of
scikit-learn. The *positive* class is the one that is held against the rest; an item is *selected* if the
model predicts this class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats
from service.statistics.names import LABELLED_RATES, RateName


@dataclass(frozen=True)
class Rate:
    """Which items a rate counts; arrays are [2, 2], by whether an item is positive, and selected."""

    name: RateName
    numerator: Floats
    denominator: Floats

    @property
    def needs_labels(self) -> bool:
        """Whether the rate depends on true classes: the selection rate does not."""
        return self.name in LABELLED_RATES

    @property
    def is_good(self) -> bool:
        """Whether a limit is the least that is wanted, not the most."""
        return self.name in {"true_positive_rate", "precision"}


_POSITIVE: Final[Floats] = np.array([[0.0, 0.0], [1.0, 1.0]])
_SELECTED: Final[Floats] = np.array([[0.0, 1.0], [0.0, 1.0]])
_ALL: Final[Floats] = np.ones((2, 2))

RATES: Final[Mapping[RateName, Rate]] = {
    rate.name: rate
    for rate in (
        Rate("false_positive_rate", (1 - _POSITIVE) * _SELECTED, 1 - _POSITIVE),
        Rate("false_negative_rate", _POSITIVE * (1 - _SELECTED), _POSITIVE),
        Rate("true_positive_rate", _POSITIVE * _SELECTED, _POSITIVE),
        Rate("precision", _POSITIVE * _SELECTED, _SELECTED),
        Rate("selection_rate", _SELECTED, _ALL),
    )
}
"""All rates by name. The true positive rate is also called recall."""

CRITERIA: Final[Mapping[str, tuple[RateName, ...]]] = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
}
"""Fairness criteria, and the rates that have to be alike in all groups for each."""
