"""What all plots share: a figure without pyplot, one look, and names that stay names.

Nothing is taken from pyplot, so that no state outlives a figure. matplotlib is an extra, and slow to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import optimize

from service.domain.arrays import Floats
from service.domain.errors import RecordingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Intervals = tuple[Floats, Floats, Floats]
"""Lower end, mean and upper end, of the same shape; the mean need not lie between the ends."""

DPI = 150

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLACK, GREY, PALE = "#000000", "#8C8C8C", "#E6E6E6"
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"

SMALL, NORMAL, LARGE = 8.0, 9.0, 10.5

PLAIN: dict[str, Any] = {"fontfamily": "DejaVu Sans", "fontsize": SMALL, "parse_math": False, "color": BLACK}
"""Properties of texts: the font that comes with matplotlib, and a $ is a dollar."""

LEGEND: dict[str, Any] = {"frameon": False, "prop": {"family": "DejaVu Sans", "size": SMALL}}

_NAME_LENGTH = 28

_LEADER = {"arrowstyle": "-", "linewidth": 1, "shrinkA": 3, "shrinkB": 0}
"""The line from what is named to its name beside the axes."""

_NAME_GAP = 0.055
"""Between names beside the axes, as a share of their height."""

_HARDLY_UNCERTAIN = 0.001


def blank(width: float, height: float, title: str) -> Figure:
    """An empty figure; width and height in inches.

    Raises:
        RecordingError: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra, slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, slow to import
    except ImportError as error:
        raise RecordingError(
            "plots", "drawing them needs matplotlib; run: pip install 'credence[replay]'"
        ) from error
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        wrapped = fill(printable(title), int(width * 12.5))
        figure.suptitle(wrapped, x=0.01, ha="left", **PLAIN | {"fontsize": LARGE})
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a PNG; the same plot gives the same bytes."""
    # By default the file would name the version of matplotlib.
    figure.savefig(path, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})


def dressed(axes: Axes, x_label: str, y_label: str) -> None:
    """Label the axes, and leave away what tells nothing."""
    axes.set_facecolor("white")
    axes.set_xlabel(x_label, **PLAIN | {"fontsize": NORMAL})
    axes.set_ylabel(y_label, **PLAIN | {"fontsize": NORMAL})
    axes.tick_params(which="both", labelsize=SMALL, labelfontfamily="DejaVu Sans", color=GREY, width=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set(color=GREY, linewidth=0.6)


def name_beside(
    axes: Axes,
    points: Floats,
    names: Sequence[str],
    looks: Sequence[Mapping[str, Any]],
    side: Literal["left", "right"] = "right",
) -> None:
    """Write names beside the axes, each at the end of a line from its point.

    Points are in fractions of the axes [N, 2], ascending; every line has a look of its own.
    """
    place, start, align = (1.06, 0, "left") if side == "right" else (-0.06, 1, "right")
    steps = _NAME_GAP * np.arange(len(points))
    # At least a gap apart, and as near as can be to their points.
    heights = optimize.isotonic_regression(points[:, 1] - steps).x
    heights = np.clip(heights, 0.0, max(1 - _NAME_GAP * (len(points) - 1), 0.0)) + steps
    for point, name, height, look in zip(points, names, heights, looks, strict=True):
        axes.annotate(
            name,
            tuple(point),
            xycoords="axes fraction",
            xytext=(place, height),
            textcoords="axes fraction",
            ha=align,
            va="center",
            arrowprops={**_LEADER, "relpos": (start, 0.5), **look},
            annotation_clip=False,
            **PLAIN,
        )


def scaled(factor: float, offset: float = 0.0) -> Callable[[float, object], str]:
    """Formatter of ticks that shows values times a factor and plus an offset, as in 1,000 or 0.25."""

    def shown(value: float, _place: object) -> str:
        number = round(value * factor + offset, 9) + 0.0
        words = f"{number:,.0f}" if number == int(number) else f"{number:g}"
        return words.replace("-", "\N{MINUS SIGN}")

    return shown


def percent(probability: float) -> str:
    """A probability for reading, never rounded to a certainty that it is not."""
    for certain, words in ((0.0, "< 0.1%"), (1.0, "> 99.9%")):
        if 0 < abs(probability - certain) < _HARDLY_UNCERTAIN:
            return words
    fine = 0 < min(probability, 1 - probability) < 10 * _HARDLY_UNCERTAIN
    return f"{100 * probability:.{1 if fine else 0}f}%"


def printable(text: str) -> str:
    """Text on one line, with a box for every character that the font lacks."""
    from matplotlib.font_manager import findfont, get_font  # noqa: PLC0415 - an extra, slow to import

    font = get_font(findfont("DejaVu Sans"))
    return "".join(
        letter if font.get_char_index(ord(letter)) else "\N{WHITE SQUARE}"
        for letter in " ".join(text.split())
    )


def short(name: str, length: int = _NAME_LENGTH) -> str:
    """A name of at most so many characters: its start and its end, by which names differ."""
    text = printable(name)
    head = (length - 1) // 2
    return text if len(text) <= length else f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"
