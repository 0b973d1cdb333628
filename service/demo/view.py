"""What the terminal shows while the demo runs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.demo.configuration import MIN_ACCURACY
from service.demo.metrics import GroupReading
from service.demo.observer import Observer

_LOWEST_SHOWN = 0.4
_BAR_WIDTH = 41


def render(observed: Observer, now: float, seconds: float) -> RenderableType:
    """One frame of the live view, of a run of this many seconds."""
    return frame(_headline(observed, now, seconds), observed)


def frame(headline: RenderableType, observed: Observer) -> RenderableType:
    """A headline, and every group's interval beside the truth."""
    return Group(headline, _forest(observed))


def _elapsed(observed: Observer, now: float) -> float:
    return now - (observed.history.streaming_at or now)


def _headline(observed: Observer, now: float, seconds: float) -> Text:
    events = observed.reading.events
    asides = [
        f"{events[name]} {name}"
        for name in ("skipped", "corrected", "reissued", "expired", "retracted")
        if events.get(name)
    ]
    budget = ", ".join(f"{name} {left}" for name, left in sorted(observed.reading.budgets.items()))
    return Text.assemble(
        ("Credence demo", "bold"),
        f"  {_elapsed(observed, now):.0f} of {seconds:.0f} s\n",
        f"stream  {observed.rate:.0f} predictions/s, {observed.reading.consumed} consumed\n",
        f"labels  {events.get('answered', 0)} of {events.get('issued', 0)} asked, "
        f"{observed.reading.open} open{''.join(', ' + aside for aside in asides)}\n",
        f"budget left  {budget or '-'}\n",
    )


def _forest(observed: Observer) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("group")
    table.add_column(f"{_LOWEST_SHOWN:.0%}".ljust(_BAR_WIDTH - 4) + "100%", no_wrap=True)
    for title in ("accuracy", "95% interval", "truth", "traffic", "labels"):
        table.add_column(title, justify="right")
    for (grouping, group), believed in observed.reading.groups.items():
        truth = observed.truths.get((grouping, group))
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
