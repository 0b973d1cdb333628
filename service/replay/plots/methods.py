"""Plots of what methods reach with how many labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize

from service.domain.arrays import Floats
from service.replay.plots.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PLAIN,
    PURPLE,
    SKY,
    VERMILLION,
    blank,
    dressed,
    scaled,
    short,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
_LINE_STYLES = ("-", "--", "-.", ":")
"""No two of the first 28 lines are alike, and neighbours differ in print without colours."""

_LINE_NAME_LENGTH = 34

_LABEL_GAP = 0.055
"""Between labels of lines, as a share of the height."""


def curves(
    labels: Floats,
    series: Mapping[str, Floats],
    measure: str,
    unit: str = "",
    *,
    log_x: bool = False,
    reference: float | None = None,
    bands: Mapping[str, tuple[Floats, Floats]] | None = None,
    title: str = "",
) -> Figure:
    """A measure by the number of labels, a line for every method (Ji et al. 2021, figure 3).

    Args:
        labels: numbers of labels, ascending [T]; above 0 where `log_x`.
        series: values of every method [T], by its name.
        measure: what the values are, such as "MRR".
        unit: of the values; where it is "%", they are shares.
        log_x: whether the numbers of labels are on a logarithmic scale.
        reference: a value to reach, such as an MRR of 0.99.
        bands: lower and upper end [T] for some or all of the methods.
        title: a sentence.

    Raises:
        RecordingError: matplotlib is missing.
    """
    figure = blank(6.6, 3.8, title)
    axes = figure.add_subplot()
    dressed(axes, "Number of labels", f"{measure} ({unit})" if unit else measure)
    looks = {
        name: (_LINE_COLOURS[place % len(_LINE_COLOURS)], _LINE_STYLES[place % len(_LINE_STYLES)])
        for place, name in enumerate(series)
    }
    # Of one point there is no line.
    marker = "o" if len(labels) == 1 else ""
    for name, values in series.items():
        colour, style = looks[name]
        axes.plot(labels, values, color=colour, linestyle=style, linewidth=1.4, marker=marker, zorder=3)
    for name, (low, high) in (bands or {}).items():
        axes.fill_between(labels, low, high, color=looks[name][0], alpha=0.15, linewidth=0, zorder=2)
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(lambda _value, _place: "")
    axes.xaxis.set_major_formatter(scaled(1))
    axes.yaxis.set_major_formatter(scaled(100 if unit == "%" else 1))
    if reference is not None:
        axes.axhline(reference, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    if labels[0] < labels[-1]:
        axes.set_xlim(labels[0], labels[-1])
    bottom, top = min(0.0, *(float(values.min()) for values in series.values())), axes.get_ylim()[1]
    axes.set_ylim(bottom, top)
    ends = {name: (float(values[-1]) - bottom) / (top - bottom) for name, values in series.items()}
    # Of lines that end together the one that was higher before is named higher.
    order = sorted(series, key=lambda name: (round(ends[name], 2), float(series[name].mean())))
    places = _spread(np.array([ends[name] for name in order]))
    for name, place in zip(order, places, strict=True):
        colour, style = looks[name]
        axes.annotate(
            short(name, _LINE_NAME_LENGTH),
            (1, ends[name]),
            xycoords="axes fraction",
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linestyle": style,
                "linewidth": 1,
                "relpos": (0, 0.5),
                "shrinkA": 3,
                "shrinkB": 0,
            },
            annotation_clip=False,
            **PLAIN,
        )
    if reference is not None:
        words = scaled(100 if unit == "%" else 1)(reference, None)
        axes.annotate(
            words,
            (0, reference),
            xycoords=axes.get_yaxis_transform(),
            xytext=(2, 2),
            textcoords="offset points",
            **PLAIN,
        )
    return figure


def _spread(wished: Floats) -> Floats:
    """Places at least a gap apart and as near as can be to those wished for, ascending, within 0 and 1."""
    steps = _LABEL_GAP * np.arange(len(wished))
    places: Floats = optimize.isotonic_regression(wished - steps).x
    return np.clip(places, 0.0, max(1 - steps[-1], 0.0)) + steps
