"""What the terminal shows while the demo runs."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.demo.configuration import MIN_ACCURACY
from service.demo.findings import Findings
from service.demo.history import History
from service.demo.reading import GroupReading, Reading

_LOWEST_SHOWN = 0.4
_BAR_WIDTH = 41


@dataclass(frozen=True)
class Scene:
    """Everything that one frame shows."""

    now: float  # seconds since the epoch
    seconds: float  # length of the run
    reading: Reading
    history: History
    findings: Findings
    rate: float  # recent predictions per second
    truths: dict[tuple[str, str], float]  # the accuracy that the demo knows, by (grouping, group)

    @property
    def elapsed(self) -> float:
        """Seconds since the stream began."""
        return self.now - (self.history.streaming_at or self.now)


def render(scene: Scene) -> RenderableType:
    """One frame of the live view."""
    return Group(_headline(scene), _forest(scene), *_changes(scene))


def compact_line(scene: Scene) -> str:
    """The same in one line, for a log."""
    events = scene.reading.events
    parts = [
        f"{scene.elapsed:3.0f} s",
        f"{scene.rate:.0f} predictions/s",
        f"labels {events.get('answered', 0)} of {events.get('issued', 0)} asked",
    ]
    parts += [
        f"{group.group} {group.mean:.1%} [{group.lower:.1%}, {group.upper:.1%}]"
        for group in scene.reading.groups.values()
        if group.grouping in ("all", "camera")
    ]
    return "  ".join(parts)


def change_line(moment: float, line: str, streaming_at: float | None) -> str:
    """One change, with the time since the stream began."""
    return f"{moment - (streaming_at or moment):5.1f} s  {line}"


def _headline(scene: Scene) -> Text:
    events = scene.reading.events
    asides = [
        f"{events[name]} {name}"
        for name in ("skipped", "corrected", "reissued", "expired", "retracted")
        if events.get(name)
    ]
    budget = ", ".join(f"{name} {left}" for name, left in sorted(scene.reading.budgets.items()))
    return Text.assemble(
        ("Credence demo", "bold"),
        f"  {scene.elapsed:.0f} of {scene.seconds:.0f} s\n",
        f"stream  {scene.rate:.0f} predictions/s, {scene.reading.consumed} consumed\n",
        f"labels  {events.get('answered', 0)} of {events.get('issued', 0)} asked, "
        f"{scene.reading.open} open{''.join(', ' + aside for aside in asides)}\n",
        f"budget left  {budget or '-'}\n",
    )


def _forest(scene: Scene) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("group")
    table.add_column(f"{_LOWEST_SHOWN:.0%}".ljust(_BAR_WIDTH - 4) + "100%", no_wrap=True)
    for title in ("accuracy", "95% interval", "truth", "traffic", "labels"):
        table.add_column(title, justify="right")
    for (grouping, group), believed in scene.reading.groups.items():
        truth = scene.truths.get((grouping, group))
        if truth is None:
            continue
        table.add_row(
            group if grouping == "all" else f"{grouping} {group}",
            _bar(believed),
            f"{believed.mean:.1%}",
            f"{believed.lower:.1%} - {believed.upper:.1%}",
            f"{truth:.1%}",
            f"{believed.share:.0%}",
            f"{believed.labels:.0f}",
        )
    return table


def _bar(group: GroupReading) -> Text:
    def column(accuracy: float) -> int:
        part = (accuracy - _LOWEST_SHOWN) / (1 - _LOWEST_SHOWN)
        return round(min(max(part, 0.0), 1.0) * (_BAR_WIDTH - 1))

    cells = [" "] * _BAR_WIDTH
    cells[column(MIN_ACCURACY)] = "┊"
    for i in range(column(group.lower), column(group.upper) + 1):
        cells[i] = "─"
    cells[column(group.mean)] = "●"
    style = "red" if group.upper < MIN_ACCURACY else "yellow" if group.mean < MIN_ACCURACY else "green"
    return Text("".join(cells), style=style)


def _changes(scene: Scene) -> list[Text]:
    lines = [change_line(moment, line, scene.history.streaming_at) for moment, line in scene.findings.lines]
    return [Text(""), *(Text(line, style="bold") for line in lines)]
