"""Names of priors and error rates, importable without numpy and scipy, for command lines and settings."""

from __future__ import annotations

from typing import Final, Literal, get_args

PriorName = Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"]

LabelledRate = Literal["false_positive_rate", "false_negative_rate", "true_positive_rate", "precision"]
"""Rates that depend on true classes."""

RateName = Literal[LabelledRate, "selection_rate"]

LABELLED_RATES: Final[tuple[LabelledRate, ...]] = get_args(LabelledRate)
