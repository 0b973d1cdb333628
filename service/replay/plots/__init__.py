"""Plots of an assessment: arrays in, a figure out, for a report or a paper.

Probabilities, accuracies, scores and shares are within 0 and 1, and are shown in per cent. Names may be of
any length and hold any characters. Intervals are lower end, mean and upper end, of the same shape. Every plot
raises `RecordingError` where matplotlib is missing.
"""

from service.replay.plots.drawing import save
from service.replay.plots.groups import (
    accuracy_against_calibration,
    difference_density,
    ranks_and_extremes,
    reliability_diagram,
)
from service.replay.plots.lines import curves, precision_recall
from service.replay.plots.matrix import confusion

__all__ = [
    "accuracy_against_calibration",
    "confusion",
    "curves",
    "difference_density",
    "precision_recall",
    "ranks_and_extremes",
    "reliability_diagram",
    "save",
]
