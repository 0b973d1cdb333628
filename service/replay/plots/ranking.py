"""Plot of who comes where, a row a group: ranks, and how probably a group is the least accurate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Floats, Indices
from service.replay.plots.drawing import (
    BLUE,
    PALE,
    PLAIN,
    VERMILLION,
    Intervals,
    blank,
    dressed,
    percent,
    scaled,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SHOWN = 40
"""Groups that a plot has rows for."""

_WRITTEN_FROM = 0.005
"""Probabilities from which on they are written beside their bars."""


def ranks_and_extremes(
    names: Sequence[str], ranks: Intervals, probability: Floats, title: str = ""
) -> Figure:
    """Rank of every group, by mean rank, and its probability (Ji et al. 2021, supplement, figure 6).

    Of very many groups those at both ends are shown, and the others counted.

    Args:
        names: of the groups [G].
        ranks: counted from 0, the least accurate, and shown from 1 [G] each.
        probability: of being the least accurate [G].
        title: a sentence.
    """
    groups = np.argsort(ranks[1], kind="stable")
    heights, half = np.arange(len(groups), dtype=np.float64), MOST_SHOWN // 2
    left_out = max(len(groups) - MOST_SHOWN, 0)
    if left_out:
        groups = np.concatenate([groups[:half], groups[-half:]])
        # A row is left free for the note.
        heights = np.delete(np.arange(MOST_SHOWN + 1.0), half)
    figure = blank(7.6, 1.3 + 0.155 * (len(groups) + bool(left_out)), title)
    left, right = figure.subplots(1, 2, width_ratios=[4, 3])
    _draw_ranks(left, ranks, groups, heights)
    _draw_probabilities(right, probability[groups], heights)
    for axes in (left, right):
        axes.set_ylim(heights.max(initial=0.0) + 0.6, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
    left.set_yticks(heights, [short(names[group]) for group in groups], **PLAIN)
    right.set_yticks(heights, [""] * len(heights))
    if left_out:
        note = f"… {left_out:,} groups between are left out …"
        left.text(0.5, half, note, transform=left.get_yaxis_transform(), ha="center", va="center", **PLAIN)
    return figure


def _draw_ranks(axes: Axes, ranks: Intervals, groups: Indices, heights: Floats) -> None:
    low, mean, high = (end[groups] + 1 for end in ranks)
    count = len(ranks[1])
    dressed(axes, "Rank (1 is the least accurate)", "")
    axes.hlines(heights, low, high, color=BLUE, linewidth=1.2, alpha=0.6)
    axes.scatter(mean, heights, s=14, color=BLUE, linewidths=0, zorder=3)
    axes.xaxis.set_major_formatter(scaled(1))
    margin = 0.5 + 0.015 * count
    axes.set_xlim(1 - margin, count + margin)
    steps = [tick for tick in axes.get_xticks() if tick == int(tick) and 1 < tick <= count]
    axes.set_xticks([1, *steps])


def _draw_probabilities(axes: Axes, shown: Floats, heights: Floats) -> None:
    dressed(axes, "Probability of being\nthe least accurate (%)", "")
    axes.barh(heights, shown, 0.7, color=VERMILLION, linewidth=0)
    for height, value in zip(heights, shown, strict=True):
        if value >= _WRITTEN_FROM:
            words = percent(float(value))
            axes.annotate(words, (value, height), (3, 0), textcoords="offset points", va="center", **PLAIN)
    axes.xaxis.set_major_formatter(scaled(100))
    # Room for what is written beside the longest bar.
    axes.set_xlim(0, 1.2 * max(float(shown.max(initial=0.0)), _WRITTEN_FROM))
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1])
