"""Plots of who comes where, a row a group: ranks, and how probably a group is the last or among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Rows:
    """Which groups are shown, and where.

    Attributes:
        groups: from the top [R].
        heights: of their rows, counted downwards; a row is left free where groups are left out [R].
        note: says how many are left out, in the free row.
        free: the height of that row.
    """

    groups: Indices
    heights: Floats
    note: str = ""
    free: int = 0

    @classmethod
    def ends(cls, order: Indices) -> _Rows:
        """The first and the last groups."""
        if len(order) <= MOST_SHOWN:
            return cls(order, np.arange(len(order), dtype=np.float64))
        half = MOST_SHOWN // 2
        heights = np.delete(np.arange(MOST_SHOWN + 1.0), half)
        note = f"… {len(order) - MOST_SHOWN:,} groups between are left out …"
        return cls(np.concatenate([order[:half], order[-half:]]), heights, note, half)

    @classmethod
    def head(cls, order: Indices, bound: float) -> _Rows:
        """The first groups; the probabilities of all others are within the bound."""
        heights = np.arange(min(len(order), MOST_SHOWN), dtype=np.float64)
        if len(order) <= MOST_SHOWN:
            return cls(order, heights)
        note = f"… {len(order) - MOST_SHOWN:,} more are left out, each at most {percent(bound)} …"
        return cls(order[:MOST_SHOWN], heights, note, MOST_SHOWN)

    @property
    def inches(self) -> float:
        """Height of a figure of them."""
        return 1.3 + 0.155 * (len(self.groups) + bool(self.note))


def rank_intervals(names: Sequence[str], ranks: Intervals, title: str = "") -> Figure:
    """Rank of every group with its interval, by mean rank (Ji et al. 2021, supplement, figure 6a).

    Args:
        names: of the groups [G].
        ranks: counted from 0, the least accurate, and shown from 1 [G] each.
        title: a sentence.

    Raises:
        RecordingError: matplotlib is missing.
    """
    rows = _Rows.ends(np.argsort(ranks[1], kind="stable"))
    figure = blank(5.0, rows.inches, title)
    axes = figure.add_subplot()
    _draw_ranks(axes, rows, names, ranks)
    return figure


def extreme_probabilities(
    names: Sequence[str], probability: Floats, extreme: str = "the least accurate", title: str = ""
) -> Figure:
    """How probable it is of every group that it is extreme, the most probable first (as above, figure 6b).

    Args:
        names: of the groups [G].
        probability: [G].
        extreme: of what.
        title: a sentence.

    Raises:
        RecordingError: matplotlib is missing.
    """
    order = np.argsort(-probability, kind="stable")
    rows = _Rows.head(order, float(probability[order[MOST_SHOWN:]].max(initial=0.0)))
    figure = blank(5.0, rows.inches, title)
    axes = figure.add_subplot()
    _draw_probabilities(axes, rows, probability, extreme)
    _name_rows(axes, rows, names)
    return figure


def ranks_and_extremes(
    names: Sequence[str],
    ranks: Intervals,
    probability: Floats,
    extreme: str = "the least accurate",
    title: str = "",
) -> Figure:
    """Both side by side, the groups by mean rank.

    Args:
        names: of the groups [G].
        ranks: counted from 0, the least accurate, and shown from 1 [G] each.
        probability: [G].
        extreme: of what.
        title: a sentence.

    Raises:
        RecordingError: matplotlib is missing.
    """
    rows = _Rows.ends(np.argsort(ranks[1], kind="stable"))
    figure = blank(7.6, rows.inches, title)
    left, right = figure.subplots(1, 2, width_ratios=[4, 3])
    _draw_ranks(left, rows, names, ranks)
    _draw_probabilities(right, rows, probability, extreme)
    right.set_yticks(rows.heights, [""] * len(rows.heights))
    return figure


def _draw_ranks(axes: Axes, rows: _Rows, names: Sequence[str], ranks: Intervals) -> None:
    low, mean, high = (end[rows.groups] + 1 for end in ranks)
    dressed(axes, "Rank (1 is the least accurate)", "")
    axes.hlines(rows.heights, low, high, color=BLUE, linewidth=1.2, alpha=0.6)
    axes.scatter(mean, rows.heights, s=14, color=BLUE, linewidths=0, zorder=3)
    axes.xaxis.set_major_formatter(scaled(1))
    margin = 0.5 + 0.015 * len(names)
    axes.set_xlim(1 - margin, len(names) + margin)
    steps = [tick for tick in axes.get_xticks() if tick == int(tick) and 1 < tick <= len(names)]
    axes.set_xticks([1, *steps])
    _bound_rows(axes, rows)
    _name_rows(axes, rows, names)


def _draw_probabilities(axes: Axes, rows: _Rows, probability: Floats, extreme: str) -> None:
    shown = probability[rows.groups]
    dressed(axes, f"Probability of being\n{extreme} (%)", "")
    axes.barh(rows.heights, shown, 0.7, color=VERMILLION, linewidth=0)
    for height, value in zip(rows.heights, shown, strict=True):
        if value >= _WRITTEN_FROM:
            axes.annotate(
                percent(float(value)),
                (value, height),
                (3, 0),
                textcoords="offset points",
                va="center",
                **PLAIN,
            )
    axes.xaxis.set_major_formatter(scaled(100))
    # Room for what is written beside the longest bar.
    axes.set_xlim(0, 1.2 * max(float(shown.max(initial=0.0)), _WRITTEN_FROM))
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1])
    _bound_rows(axes, rows)


def _bound_rows(axes: Axes, rows: _Rows) -> None:
    last = max(rows.heights.max(initial=0.0), rows.free if rows.note else 0.0)
    axes.set_ylim(last + 0.6, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)


def _name_rows(axes: Axes, rows: _Rows, names: Sequence[str]) -> None:
    axes.set_yticks(rows.heights, [short(names[group]) for group in rows.groups], **PLAIN)
    if rows.note:
        axes.text(
            0.5, rows.free, rows.note, transform=axes.get_yaxis_transform(), ha="center", va="center", **PLAIN
        )
