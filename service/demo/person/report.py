"""What the demo that a person labels prints at its end. It judges nobody."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from service.demo.metrics import GroupReading, Reading
from service.demo.person.answers import Answers
from service.demo.report import GroupResult

_NONE = "You gave no label, so the estimates come from scores alone."


def summary_lines(answers: Answers, wanted: int) -> list[str]:
    """How many labels were given of those that were wanted, how fast, and how many are the truth."""
    if not len(answers):
        return [_NONE]
    each = f", {answers.seconds / (len(answers) - 1):.1f} s each" if len(answers) > 1 else ""
    asides = [
        f"{count} {what}"
        for what, count in (("skipped", answers.skipped), ("corrected", answers.corrected))
        if count
    ]
    agreed, count = answers.agreement()
    cameras = ", ".join(f"{name} {a} of {n}" for name, (a, n) in answers.agreement_by_camera().items())
    return [
        f"You gave {len(answers)} of {wanted} labels{each}{''.join(f'; {aside}' for aside in asides)}.",
        f"You chose the true class of {agreed} of {count} items, {agreed / count:.1%}: {cameras}.",
    ]


def print_person_report(
    console: Console, answers: Answers, *, wanted: int, first: Reading | None, results: Sequence[GroupResult]
) -> None:
    """Print what the person did, and each interval at first and now, beside the truth.

    Args:
        console: where it is printed.
        answers: of the person.
        wanted: labels that end the run.
        first: the first reading with estimates, if there is one.
        results: intervals and the truth now.
    """
    for line in summary_lines(answers, wanted):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if first is not None:
        console.print()
        console.print(_intervals(first, results))


def _intervals(first: Reading, results: Sequence[GroupResult]) -> Table:
    table = Table(
        box=None, pad_edge=False, title="95% interval of the accuracy of the predictions that come now"
    )
    table.add_column("group")
    for title in ("before your labels", "now", "points wide", "labels", "truth"):
        table.add_column(title, justify="right")
    for result in results:
        now = result.reading
        if now.grouping not in {"all", "camera"}:
            continue
        before = first.groups.get((now.grouping, now.group))
        table.add_row(
            now.group if now.grouping == "all" else f"{now.grouping} {now.group}",
            "-" if before is None else _ends(before),
            _ends(now),
            _points(now) if before is None else f"{_points(before)} → {_points(now)}",
            f"{now.labels:.0f}",
            f"{result.truth:.1%}",
        )
    return table


def _ends(group: GroupReading) -> str:
    return f"{group.lower:.1%} - {group.upper:.1%}"


def _points(group: GroupReading) -> str:
    return f"{100 * (group.upper - group.lower):.0f}"
