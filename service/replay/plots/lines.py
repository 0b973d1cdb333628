"""Plots of lines: what methods reach with how many labels, and precision-recall curves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Floats
from service.replay.plots.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LEGEND,
    ORANGE,
    PLAIN,
    PURPLE,
    SKY,
    VERMILLION,
    Intervals,
    blank,
    dressed,
    name_beside,
    scaled,
    short,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
_LINE_STYLES = ("-", "--", "-.", ":")
"""No two of the first 28 lines are alike, and neighbours differ in print without colours."""

_LINE_NAME_LENGTH = 34


def curves(
    labels: Floats,
    series: Mapping[str, Floats],
    measure: str,
    unit: str = "",
    *,
    reference: float | None = None,
    title: str = "",
) -> Figure:
    """A measure by the number of labels, a line for every method (Ji et al. 2021, figure 3).

    Values of every method are at ascending numbers of labels [T]; where the unit is "%", they are shares. The
    reference is a value to reach, such as an MRR of 0.99.
    """
    figure = blank(6.6, 3.8, title)
    axes = figure.add_subplot()
    dressed(axes, "Number of labels", f"{measure} ({unit})" if unit else measure)
    looks = dict(zip(series, zip(cycle(_LINE_COLOURS), cycle(_LINE_STYLES), strict=False), strict=False))
    # Of one point there is no line.
    marker = "o" if len(labels) == 1 else ""
    for name, values in series.items():
        colour, style = looks[name]
        axes.plot(labels, values, color=colour, linestyle=style, linewidth=1.4, marker=marker, zorder=3)
    axes.xaxis.set_major_formatter(scaled(1))
    scale = scaled(100 if unit == "%" else 1)
    axes.yaxis.set_major_formatter(scale)
    if reference is not None:
        axes.axhline(reference, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    if labels[0] < labels[-1]:
        axes.set_xlim(labels[0], labels[-1])
    bottom, top = min(0.0, *(float(values.min()) for values in series.values())), axes.get_ylim()[1]
    axes.set_ylim(bottom, top)
    ends = {name: (float(values[-1]) - bottom) / (top - bottom) for name, values in series.items()}
    # Of lines that end together the one that was higher before is named higher.
    order = sorted(series, key=lambda name: (round(ends[name], 2), float(series[name].mean())))
    name_beside(
        axes,
        np.array([(1, ends[name]) for name in order]),
        [short(name, _LINE_NAME_LENGTH) for name in order],
        [dict(zip(("color", "linestyle"), looks[name], strict=True)) for name in order],
    )
    if reference is not None:
        words, across = scale(reference, None), axes.get_yaxis_transform()
        axes.annotate(words, (0, reference), (2, 2), across, "offset points", **PLAIN)
    return figure


def precision_recall(
    recalls: Floats, precision: Intervals, truth: Floats, *, mass: float, title: str = ""
) -> Figure:
    """Precision at every recall: estimated, with its interval, and true (Welinder et al. 2013, figure 1).

    Precision and truth are at ascending recalls [R]; intervals have the probability `mass`.
    """
    figure = blank(4.6, 4.4, title)
    axes = figure.add_subplot()
    dressed(axes, "Recall (%)", "Precision (%)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(scaled(100))
    low, mean, high = precision
    axes.fill_between(
        recalls, low, high, color=BLUE, alpha=0.2, linewidth=0, zorder=1, label=f"{100 * mass:g}% interval"
    )
    axes.plot(recalls, mean, color=BLUE, linewidth=1.4, zorder=2, label="estimated")
    axes.plot(recalls, truth, color=BLACK, linewidth=1.0, linestyle="--", zorder=3, label="true")
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(loc="lower left", **LEGEND)
    return figure
