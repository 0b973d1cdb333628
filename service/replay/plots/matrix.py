"""Plots of confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Floats
from service.replay.plots.drawing import BLACK, NORMAL, PALE, PLAIN, SMALL, blank, dressed, scaled, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_NAMED = 40
"""Classes of a confusion matrix that are named one by one."""

_MOST_WRITTEN = 12
"""Classes of a confusion matrix whose probabilities are written into it."""

_MOST_CELLS = 400
"""Rows of a confusion matrix that can be told apart on paper."""

_LIGHTEST = 1e-3
"""Confusions so many times less probable than the worst are all of the lightest colour."""

_HARDLY_WRONG = 1e-3
"""Where no confusion is as probable as this, none has the darkest colour."""


def confusion(names: Sequence[str], mean: Floats, title: str = "") -> Figure:
    """Confusion matrix, in which the colours tell of what is confused, not of what is right.

    Of very many classes a cell shows the worst confusion of some neighbouring ones, so that none is lost.
    Rows are probabilities of every true class given a predicted one [K, K].
    """
    size = len(mean)
    figure = blank(6.6, 5.6, title)
    axes = figure.add_subplot()
    every = "" if size <= _MOST_NAMED else f" (all {size:,})"
    dressed(axes, f"True class{every}", f"Predicted class{every}")
    wrong = np.where(np.eye(size, dtype=bool), np.nan, mean)
    worst = float(np.nanmax(wrong, initial=_HARDLY_WRONG))
    starts = np.arange(0, size, -(-size // _MOST_CELLS))
    cells = np.fmax.reduceat(np.fmax.reduceat(wrong, starts, axis=0), starts, axis=1)
    # What has no number is transparent: the diagonal is of the colour behind.
    axes.set_facecolor(PALE)
    floor = worst * _LIGHTEST
    image = axes.imshow(
        np.maximum(cells, floor),
        cmap="Blues",
        norm="log",
        vmin=floor,
        vmax=worst,
        interpolation="nearest",
        extent=(-0.5, size - 0.5, size - 0.5, -0.5),
    )
    bar = figure.colorbar(image, ax=axes, format=scaled(100), extend="min", shrink=0.8)
    dressed(bar.ax, "", "Probability, given the predicted class (%)")
    bar.ax.yaxis.set_minor_formatter(lambda _value, _place: "")
    for side, spine in bar.ax.spines.items():
        spine.set_visible(side == "outline")
    if size > _MOST_NAMED:
        axes.set(xticks=[], yticks=[])
        return figure
    places, shown = range(size), [short(name) for name in names]
    letters = PLAIN | {"fontsize": min(SMALL, 200 / size)}
    axes.set_xticks(places, shown, rotation=90, **letters)
    axes.set_yticks(places, shown, **letters)
    if size <= _MOST_WRITTEN:
        for row, column in np.ndindex(size, size):
            probability = mean[row, column]
            dark = row != column and probability > worst / 8
            axes.text(
                column,
                row,
                "-" if np.isnan(probability) else f"{100 * probability:.1f}",
                ha="center",
                va="center",
                **PLAIN | {"fontsize": NORMAL - 2, "color": "white" if dark else BLACK},
            )
    return figure
