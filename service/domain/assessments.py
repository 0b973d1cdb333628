"""Names of what assessments can be about: light, for settings and command lines.

`service.statistics.tasks` and `service.statistics.policies` have the code behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Task = Literal[
    "estimation", "identification", "comparison", "performance", "ensemble", "challenge", "error_rates"
]
Metric = Literal[
    "accuracy",
    "overall_accuracy",
    "calibration",
    "confusion",
    "cost",
    "precision_recall",
    "precision",
    "error_rates",
]
Policy = Literal[
    "thompson", "random", "multiple_play", "top_two", "epsilon_greedy", "bayes_ucb", "certify", "adaptive"
]
Aim = Literal["f1", "precision", "recall", "false_positive_rate", "curve"]
LabelledRate = Literal["false_positive_rate", "false_negative_rate", "true_positive_rate", "precision"]
RateName = Literal[LabelledRate, "selection_rate"]

MOST_TARGET: Final = 1 - 1e-6
"""The highest share of labels that a certificate can require to agree with predictions.

More takes millions of labels, and predictive probabilities are not so exact."""

METRICS: Final[Mapping[Task, tuple[Metric, ...]]] = {
    "estimation": ("accuracy", "overall_accuracy", "calibration", "confusion"),
    "identification": ("accuracy", "calibration", "cost"),
    "comparison": ("accuracy",),
    "performance": ("precision_recall",),
    "ensemble": ("precision",),
    "challenge": ("accuracy",),
    "error_rates": ("error_rates",),
}
"""What every task can be about."""
