"""Names beside points, each where it covers the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from service.domain.arrays import Flags, Floats
from service.replay.plots.drawing import BLACK, PLAIN, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ANGLES = (np.arange(16) + 0.5) * np.pi / 8
_DIRECTIONS = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_DISTANCES = (9.0, 16.0, 26.0, 40.0, 58.0, 80.0, 110.0, 145.0)
"""Where a name is tried, in points from what it names; never along a bar, with which its line would merge."""

_NAME_LENGTH = 24

_MARGIN = 2.0
"""Kept free around a name, in points."""

_POINT, _BAR = 4.0, 0.5
"""What it costs to cover a point or a bar, where 20 points of distance cost 1: bars are long and many."""


def name_points(axes: Axes, names: Sequence[str], points: Floats, bars: Floats) -> None:
    """Write names beside the first points; a name without room is not written.

    Args:
        axes: with limits that stay.
        names: of the first points, the most important first.
        points: in data coordinates [N, 2].
        bars: lines along an axis, from start to end in data coordinates [M, 2, 2].
    """
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    room = _Room(axes, points, bars, scale)
    for place, name in enumerate(names):
        text = axes.annotate(
            short(name, _NAME_LENGTH),
            tuple(points[place]),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": BLACK, "shrinkA": 0, "shrinkB": 3},
            bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
            zorder=10,
            **PLAIN,
        )
        # The layout is made; a name inside the axes does not change it.
        text.set_in_layout(False)
        extent = text.get_window_extent()
        offset = room.take(place, np.array([extent.width, extent.height]) / 2 + _MARGIN * scale)
        if offset is None:
            text.remove()
        else:
            text.set_position((float(offset[0]) / scale, float(offset[1]) / scale))


class _Room:
    """What is free of the axes, in pixels, of which there are `scale` in a point of a font."""

    def __init__(self, axes: Axes, points: Floats, bars: Floats, scale: float) -> None:
        self._points = axes.transData.transform(points)
        self._bars = np.sort(axes.transData.transform(bars.reshape(-1, 2)).reshape(-1, 2, 2), axis=1)
        self._inside = axes.get_window_extent().get_points()
        self._scale = scale
        self._boxes = np.empty((0, 2, 2))
        self._lines = np.empty((0, 2, 2))

    def take(self, place: int, half: Floats) -> Floats | None:
        """Offset [2] of the middle of a name from its point, if there is one; `half` is its half size [2]."""
        point = self._points[place]
        best, lowest = None, np.inf
        for distance in _DISTANCES:
            for direction in _DIRECTIONS:
                middle = point + direction * (distance * self._scale + half)
                cost = self._cost(point, middle, half) + distance / 20
                if cost < lowest:
                    best, lowest = middle, cost
        if best is None:
            return None
        self._boxes = np.concatenate([self._boxes, [[best - half, best + half]]])
        self._lines = np.concatenate([self._lines, [[point, best]]])
        return np.asarray(best - point, np.float64)

    def _cost(self, point: Floats, middle: Floats, half: Floats) -> float:
        low, high = middle - half, middle + half
        if (
            np.any(low < self._inside[0])
            or np.any(high > self._inside[1])
            or np.any(_meet(self._boxes, low, high))
            # The line to a name may run through no other name, no other line through it, and none cross.
            or any(_leads_through(point, middle, *corners) for corners in self._boxes)
            or any(_leads_through(start, end, low, high) for start, end in self._lines)
            or _cross_any(self._lines, point, middle)
        ):
            return np.inf
        covered = np.all((self._points > low) & (self._points < high), axis=1).sum()
        return float(_POINT * covered + _BAR * _meet(self._bars, low, high).sum())


def _meet(boxes: Floats, low: Floats, high: Floats) -> Flags:
    """Which boxes [M, 2, 2], from their lower to their upper corner, meet another one."""
    return np.asarray(np.all((boxes[:, 0] < high) & (boxes[:, 1] > low), axis=1), np.bool_)


def _leads_through(start: Floats, end: Floats, low: Floats, high: Floats) -> bool:
    way = start + np.linspace(0, 1, 48)[:, None] * (end - start)
    return bool(np.any(np.all((way > low) & (way < high), axis=1)))


def _cross_any(lines: Floats, start: Floats, end: Floats) -> bool:
    """Whether a line crosses one of others [M, 2, 2]; those that begin at one point do not."""

    def side(base: Floats, tip: Floats, point: Floats) -> Floats:
        way, other = tip - base, point - base
        return np.asarray(way[..., 0] * other[..., 1] - way[..., 1] * other[..., 0], np.float64)

    first, last = lines[:, 0], lines[:, 1]
    apart = side(start, end, first) * side(start, end, last) < 0
    return bool(np.any(apart & (side(first, last, start) * side(first, last, end) < 0)))
