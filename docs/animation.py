"""Draws a recording of the demo as an SVG that moves by CSS alone, without scripts or external resources.

It shows its last moment where motion is not wanted, and has light and dark colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

SPEED = 4.5
"""Seconds of the run per second of the picture."""

HOLD_SECONDS = 9.0
"""How long the end is shown before it begins again."""

THRESHOLD = 0.8
LOWEST = 0.2
WIDTH, MARGIN = 960, 24
RIGHT = WIDTH - MARGIN
BARS_LEFT, BARS_WIDTH = 150, 560
ROW, LINE = 30, 22
TITLE = 40
SECONDS_RIGHT, ACTOR_LEFT, TEXT_LEFT = 84, 100, 184
_INSTANT = 1e-3


class Line(NamedTuple):
    """One event of the story."""

    seconds: float  # since the stream began
    actor: str
    text: str


class Frame(NamedTuple):
    """One estimate of a group's accuracy."""

    seconds: float  # since the stream began
    lower: float
    mean: float
    upper: float

    @property
    def state(self) -> str:
        """`fails` if the interval is below the threshold, `open` if the threshold is in it, else `meets`."""
        return "fails" if self.upper < THRESHOLD else "open" if self.lower < THRESHOLD else "meets"


@dataclass(frozen=True)
class Recording:
    """What is drawn."""

    seconds: float  # length of the run
    events: Sequence[Line]
    frames: Mapping[str, Sequence[Frame]]  # by group
    last: Sequence[str]  # lines after the end


STYLE = """\
:root { color-scheme: light dark; }
.paper { fill: #ffffff; stroke: #d5dae0; } .bar { fill: #eef0f3; } .track { fill: #e3e7ec; }
text { fill: #16191d; font-size: 13px; white-space: pre; }
text { font-family: ui-monospace, "SF Mono", "Cascadia Code", "Liberation Mono", monospace; }
.soft { fill: #56606b; } .strong { font-weight: 700; } .axis { stroke: #9aa4af; stroke-dasharray: 3 3; }
.meets { fill: #1d5f9e; } .open { fill: #8a6100; } .fails { fill: #b23a12; } .done { fill: #9aa4af; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0e1216; stroke: #2b343e; } .bar { fill: #1e252d; } .track { fill: #222a32; }
  text { fill: #e7ebef; } .soft { fill: #9eaab6; } .axis { stroke: #5b6570; }
  .meets { fill: #74b4ee; } .open { fill: #e3b341; } .fails { fill: #ff9270; } .done { fill: #5b6570; }
}
"""


def draw(recording: Recording) -> str:
    """The SVG of a recording."""
    clock = Clock(recording.seconds)
    rows = list(recording.frames)
    top = TITLE + 34
    lines_top = top + ROW * len(rows) + 44
    height = lines_top + LINE * (len(recording.events) + len(recording.last)) + MARGIN + 8
    speed = f"{recording.seconds:g} s, shown {SPEED:g} times as fast"
    body = [
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<path class="bar" d="M1 {TITLE}V9a8 8 0 0 1 8-8H{WIDTH - 9}a8 8 0 0 1 8 8v{TITLE - 9}z"/>',
        _text("$ make demo", MARGIN, 25, "strong"),
        _text(speed, RIGHT, 25, "soft", anchor="end"),
        *_progress(clock),
        *_axis(top, len(rows)),
    ]
    for index, name in enumerate(rows):
        body += _group(clock, name, recording.frames[name], top + ROW * index + ROW / 2)
    for index, event in enumerate(recording.events):
        body.append(_event(clock, event, lines_top + LINE * index))
    for index, text in enumerate(recording.last, start=1):
        style = "strong" if index == len(recording.last) else "soft"
        y = lines_top + LINE * (len(recording.events) + index - 1) + 8
        body.append(_shown(clock, recording.seconds, _text(text, MARGIN, y, style)))
    story = " ".join(f"{event.seconds:.0f} s: {event.actor} {event.text}." for event in recording.events)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title story">'
    return "\n".join(
        [
            head,
            '<title id="title">Recording of the Credence demo</title>',
            f'<desc id="story">{escape(story)}</desc>',
            f"<style>\n{STYLE}{clock.rules()}</style>",
            *body,
            "</svg>\n",
        ]
    )


def _text(content: str, x: float, y: float, style: str = "", *, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(content)}</text>'


class Clock:
    """Names and keeps the animations of one picture, which all have its length and begin again together."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._length = seconds / SPEED + HOLD_SECONDS
        self._keyframes: dict[str, str] = {}  # their names, by content

    def part(self, seconds: float) -> float:
        """Percentage of the picture's length at a moment of the run."""
        return round(100 * min(seconds, self.seconds) / SPEED / self._length, 2)

    def animate(self, steps: Iterable[tuple[float, str]]) -> str:
        """The class of an animation that has these declarations from these percentages on."""
        content = " ".join(f"{percentage:g}% {{ {declared} }}" for percentage, declared in steps)
        return self._keyframes.setdefault(content, f"a{len(self._keyframes)}")

    def rules(self) -> str:
        """The animations' style sheet; nothing moves for those who do not want it."""
        rules = [
            f"@keyframes {name} {{ {content} }}\n"
            f".{name} {{ animation: {name} {self._length:.2f}s linear infinite; }}"
            for content, name in self._keyframes.items()
        ]
        return "\n".join(["@media (prefers-reduced-motion: no-preference) {", *rules, "}", ""])


def _shown(clock: Clock, seconds: float, element: str) -> str:
    """An element that appears at a moment of the run."""
    at = clock.part(seconds)
    name = clock.animate(
        [(0, "opacity: 0"), (at, "opacity: 0"), (at + _INSTANT, "opacity: 1"), (100, "opacity: 1")]
    )
    return f'<g class="{name}">{element}</g>'


def _progress(clock: Clock) -> Iterator[str]:
    end = clock.part(clock.seconds)
    name = clock.animate(
        [(0, "transform: scaleX(0)"), (end, "transform: scaleX(1)"), (100, "transform: scaleX(1)")]
    )
    yield f'<rect class="track" x="1" y="{TITLE}" width="{WIDTH - 2}" height="3"/>'
    yield f'<rect class="done {name}" x="1" y="{TITLE}" width="{WIDTH - 2}" height="3"/>'


def _x(accuracy: float) -> float:
    part = (min(max(accuracy, LOWEST), 1.0) - LOWEST) / (1 - LOWEST)
    return round(BARS_LEFT + BARS_WIDTH * part, 1)


def _axis(top: float, rows: int) -> Iterator[str]:
    yield _text("accuracy", MARGIN, top - 10, "soft")
    for accuracy in (LOWEST, 0.4, 0.6, THRESHOLD, 1.0):
        yield _text(f"{accuracy:.0%}", _x(accuracy), top - 10, "soft", anchor="middle")
    yield _text("mean, 95% interval", RIGHT, top - 10, "soft", anchor="end")
    x = _x(THRESHOLD)
    yield f'<path class="axis" d="M{x} {top}v{ROW * rows}"/>'


def _group(clock: Clock, name: str, frames: Sequence[Frame], y: float) -> Iterator[str]:
    yield _text(name, MARGIN, y + 4)
    for index, frame in enumerate(frames):
        until = frames[index + 1].seconds if index + 1 < len(frames) else None
        left, right = _x(frame.lower), _x(frame.upper)
        estimate = f"{frame.mean:.1%} ({100 * frame.lower:.1f}-{frame.upper:.1%})"
        drawn = (
            f'<rect x="{left}" y="{y - 2}" width="{round(right - left, 1)}" height="4" rx="2"/>'
            f'<circle cx="{_x(frame.mean)}" cy="{y}" r="6"/>'
            f"{_text(estimate, RIGHT, y + 4, frame.state, anchor='end')}"
        )
        yield _between(clock, frame, until, drawn)


def _between(clock: Clock, frame: Frame, until: float | None, drawn: str) -> str:
    """An estimate from its moment to the next one's; without animation the last one alone is shown."""
    begin, end = clock.part(frame.seconds), 100.0 if until is None else clock.part(until)
    steps = [(0, "opacity: 0"), (begin, "opacity: 0"), (begin + _INSTANT, "opacity: 1"), (end, "opacity: 1")]
    if until is not None:
        steps += [(end + _INSTANT, "opacity: 0"), (100, "opacity: 0")]
    hidden = "" if until is None else ' opacity="0"'
    return f'<g class="{frame.state} {clock.animate(steps)}"{hidden}>{drawn}</g>'


def _event(clock: Clock, event: Line, y: float) -> str:
    style = "strong" if event.actor == "Credence" else "soft"
    drawn = (
        _text(f"{event.seconds:.1f} s", SECONDS_RIGHT, y, "soft", anchor="end"),
        _text(event.actor, ACTOR_LEFT, y, style),
        _text(event.text, TEXT_LEFT, y),
    )
    return _shown(clock, event.seconds, "".join(drawn))
