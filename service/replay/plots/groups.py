"""Plots of estimates of groups: accuracy, calibration, ranks, and how two groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.arrays import Floats, Indices
from service.replay.plots.drawing import (
    BLACK,
    BLUE,
    GREY,
    LARGE,
    LEGEND,
    ORANGE,
    PALE,
    PLAIN,
    SMALL,
    VERMILLION,
    Intervals,
    blank,
    dressed,
    name_beside,
    percent,
    scaled,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NAMED = 8

MOST_SHOWN = 40
"""Groups that a plot has rows for."""

_WRITTEN_FROM = 0.005
"""Probabilities from which on they are written beside their bars."""

_MANY = 200
"""Of more groups than so many, those in the middle are drawn fainter."""

_SIDE_NAME_LENGTH = 22

_LEADER = {"color": BLACK, "linewidth": 0.5, "linestyle": (0, (2, 2))}


def accuracy_against_calibration(
    names: Sequence[str], accuracy: Intervals, ece: Intervals, highlighted: int = 10, title: str = ""
) -> Figure:
    """Accuracy and expected calibration error of every group, with intervals (Ji et al. 2021, figure 1).

    So many groups at either end are in colour, if there are twice as many. Intervals are [G] each.
    """
    figure = blank(6.6, 4.6, title)
    axes = figure.add_subplot()
    dressed(axes, "Accuracy (%)", "Expected calibration error (%)")
    # The names of the least accurate groups are on the left, where these are.
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"right", "bottom"})
    axes.xaxis.set_major_formatter(scaled(100))
    axes.yaxis.set_major_formatter(scaled(100))
    order = np.argsort(accuracy[1], kind="stable")
    count = min(highlighted, len(order) // 2)
    kinds = [
        (order[count : len(order) - count], "other groups", GREY, "o"),
        (order[len(order) - count :], "most accurate", BLUE, "^"),
        (order[:count], "least accurate", VERMILLION, "v"),
    ]
    faint = 0.25 if len(order) > _MANY else 0.6
    for layer, (groups, words, colour, marker) in enumerate(kinds):
        if not groups.size:
            continue
        (left, x, right), (low, y, high) = ([end[groups] for end in ends] for ends in (accuracy, ece))
        alpha, size = (0.75, 22) if layer else (faint, 10)
        look: dict[str, Any] = {"color": colour, "linewidth": 0.8, "alpha": alpha, "zorder": 2 + layer}
        axes.hlines(y, left, right, **look)
        axes.vlines(x, low, high, **look)
        label = f"{groups.size:,} {words}"
        axes.scatter(x, y, s=size, color=colour, marker=marker, label=label, linewidths=0, zorder=6 + layer)
    if count:
        handles, labels = axes.get_legend_handles_labels()
        above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
        axes.legend(handles[::-1], labels[::-1], borderaxespad=0.2, handletextpad=0.1, **LEGEND, **above)
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    named = order if len(order) <= _MOST_NAMED else order[: min(_MOST_NAMED, count)]
    places = np.column_stack([accuracy[1], ece[1]])[named]
    fractions = (axes.transData - axes.transAxes).transform(places)
    upward = np.argsort(fractions[:, 1], kind="stable")
    names_upward = [short(names[group], _SIDE_NAME_LENGTH) for group in named[upward]]
    name_beside(axes, fractions[upward], names_upward, [_LEADER] * len(named), "left")
    return figure


def reliability_diagram(
    scores: Floats, shares: Floats, accuracy: Intervals, ece: tuple[float, float, float], title: str = ""
) -> Figure:
    """Accuracy against score of every bin, and its traffic (Ji et al. 2021, supplement, figure 1).

    Bins without traffic are left out: nothing is known of them but the prior. Mean scores, shares of traffic
    and ends of intervals are of every bin [B].
    """
    used = shares > 0
    s, share = scores[used], shares[used]
    low, mean, high = (end[used] for end in accuracy)
    figure = blank(4.6, 5.6, title)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    dressed(upper, "", "Accuracy (%)")
    dressed(lower, "Mean score of a bin (%)", "Traffic (%)")
    for axis in (upper.yaxis, lower.xaxis, lower.yaxis):
        axis.set_major_formatter(scaled(100))
    # Bars may not cover one another, however near the scores of two bins are.
    width = np.full(s.size, 1 / scores.size)
    if s.size > 1:
        apart = np.abs(s[:, None] - s) + np.eye(s.size)
        width = np.minimum(width, apart.min(axis=1))
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    upper.bar(s, mean - s, 0.9 * width, s, color=ORANGE, alpha=0.35, linewidth=0, label="gap", zorder=2)
    upper.vlines(s, low, high, color=VERMILLION, linewidth=1.2, zorder=3, clip_on=False)
    upper.scatter(s, mean, s=20, color=VERMILLION, linewidths=0, zorder=4, clip_on=False)
    lower.bar(s, share, 0.9 * width, color=BLUE, linewidth=0)
    upper.set(xlim=(0, 1), ylim=(0, 1))
    lower.set_ylim(0, 1.05 * share.max(initial=0.01))
    # The corner that the points do not go to: overconfident ones lie below the diagonal.
    below = float(share @ (mean - s)) < 0
    upper.text(
        0.03 if below else 0.97,
        0.97 if below else 0.03,
        f"Expected calibration error {100 * ece[1]:.1f}%\n95%: {100 * ece[0]:.1f} to {100 * ece[2]:.1f}%",
        transform=upper.transAxes,
        ha="left" if below else "right",
        va="top" if below else "bottom",
        **PLAIN,
    )
    return figure


def difference_density(
    points: Floats,
    density: Floats,
    region: float,
    probabilities: Floats,
    names: tuple[str, str],
    *,
    truth: float | None = None,
    title: str = "",
) -> Figure:
    """Density of how much more accurate one group is than another (Ji et al. 2021, supplement, figure 5).

    The density is at differences of accuracy, ascending within -1 and 1 [T], and may be infinite.
    Probabilities are that the first group is worse, alike within the region, and better [3].
    """
    figure = blank(6.6, 3.6, title)
    axes = figure.add_subplot()
    first, second = (short(name, _SIDE_NAME_LENGTH) for name in names)
    dressed(axes, f"Accuracy of {first}\nless that of {second} (percentage points)", "Density")
    axes.xaxis.set_major_formatter(scaled(100))
    axes.set_yticks([])
    peak = float(density[np.isfinite(density)].max(initial=0.0)) or 1.0
    drawn = np.minimum(density, 2 * peak)
    axes.plot(points, drawn, color=BLACK, linewidth=1.2, zorder=3)
    # Areas meet at the ends of the region, wherever the points are.
    across = np.union1d(points, [-region, region])
    filled = np.interp(across, points, drawn)
    sides = [
        (across <= -region, VERMILLION, f"{first} is worse"),
        (np.abs(across) <= region, GREY, f"alike within {100 * region:g} points"),
        (across >= region, BLUE, f"{first} is better"),
    ]
    axes.axvspan(-region, region, color=PALE, linewidth=0, zorder=0)
    for place, (where, colour, words) in enumerate(sides):
        axes.fill_between(across, filled, where=where, color=colour, alpha=0.55, linewidth=0, zorder=2)
        for height, text, size in ((1.14, percent(float(probabilities[place])), LARGE), (1.05, words, SMALL)):
            axes.text(
                place / 2,
                height,
                text,
                transform=axes.transAxes,
                ha=("left", "center", "right")[place],
                **PLAIN | {"fontsize": size, "color": BLACK if colour == GREY else colour},
            )
    seen = points[drawn > peak / 1_000]
    marks = np.array([-region, region, *([] if truth is None else [truth])])
    start, end = min(seen.min(initial=1), marks.min()), max(seen.max(initial=-1), marks.max())
    margin = 0.03 * (end - start)
    axes.set(xlim=(start - margin, end + margin), ylim=(0, 1.15 * peak))
    if truth is not None:
        axes.axvline(truth, color=BLACK, linewidth=1, linestyle="--", zorder=4)
        towards = 1 if 2 * truth < start + end else -1
        axes.annotate(
            f"truth {scaled(100)(round(truth, 3), None)}",
            (truth, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(4 * towards, -2),
            textcoords="offset points",
            ha="left" if towards > 0 else "right",
            va="top",
            **PLAIN,
        )
    return figure


def ranks_and_extremes(
    names: Sequence[str], ranks: Intervals, probability: Floats, title: str = ""
) -> Figure:
    """Rank of every group, by mean rank, and its probability (Ji et al. 2021, supplement, figure 6).

    Ranks are counted from 0, the least accurate, and shown from 1; the probability is of being the least
    accurate [G]. Of very many groups those at both ends are shown, and the others counted.
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
