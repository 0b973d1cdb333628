"""Plot of an estimated precision-recall curve beside the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain.arrays import Floats
from service.replay.plots.drawing import BLACK, BLUE, PLAIN, Intervals, blank, dressed, scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def precision_recall(
    recalls: Floats, precision: Intervals, truth: Floats, *, mass: float, title: str = ""
) -> Figure:
    """Precision at every recall: estimated, with its interval, and true (Welinder et al. 2013, figure 1).

    Args:
        recalls: ascending [R].
        precision: as it is estimated [R] each.
        truth: as it is [R].
        mass: probability inside the intervals.
        title: a sentence.

    Raises:
        RecordingError: matplotlib is missing.
    """
    figure = blank(4.6, 4.4, title)
    axes = figure.add_subplot()
    dressed(axes, "Recall (%)", "Precision (%)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(scaled(100))
    low, mean, high = precision
    axes.fill_between(
        recalls, low, high, color=BLUE, alpha=0.2, linewidth=0, zorder=1, label=f"{100 * mass:g} % interval"
    )
    axes.plot(recalls, mean, color=BLUE, linewidth=1.4, zorder=2, label="estimated")
    axes.plot(recalls, truth, color=BLACK, linewidth=1.0, linestyle="--", zorder=3, label="true")
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    font = {"family": PLAIN["fontfamily"], "size": PLAIN["fontsize"]}
    axes.legend(loc="lower left", frameon=False, prop=font)
    return figure
