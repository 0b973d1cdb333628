"""The report of a trial in the terminal, and the words that both reports use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.app.plain_text import plain
from service.app.trial.random_labels import FEWEST_LABELS
from service.app.trial.results import FEWEST_ROWS, TrialGroup, TrialResult
from service.domain.times import duration

_MOST_GROUPS: Final = 20
_SHORT_SECONDS: Final = 120.0

TRUTH: Final = (
    "Truth is the share of right predictions among the group's rows that were streamed and have a true "
    "class. An interval is about the accuracy of the group's current predictions: the next ones, if nothing "
    "changes. Both are the same quantity if the group's accuracy does not change along the file. If it does, "
    "the interval follows the change, and the truth shown here is still the mean over the file. Rows count "
    "in the order of the file, as predicted when they were streamed."
)
"""What is compared with what."""


E_VALUE: Final = (
    "The e-value of a confirmed finding is the factor by which a bet against chance has multiplied its "
    "stake. If there were nothing to find, it would ever reach 20 with a probability of at most 5%, however "
    "often you look. A finding that is not confirmed has a posterior probability of 95% or more."
)
"""What *confirmed (e-value)* means, where a report says it."""


CHANGED: Final = "* Credence found a change point of this group: its interval is about the rows since then."


def print_result(console: Console, result: TrialResult) -> None:
    """Print the groups, coverage, costs and next steps."""
    for groups in result.groups.values():
        console.print(_table(groups))
        if len(groups) > _MOST_GROUPS:
            _line(console, f"and {len(groups) - _MOST_GROUPS:,} groups more, which the HTML report shows")
    console.print()
    facts = figures(result)
    width = max(len(what) for what, _ in facts)
    for what, text in facts:
        _line(console, f"{what:<{width}}  {text}")
    console.print()
    for report in result.reports:
        _line(console, f"Reported: {plain(report)}")
    if result.has_e_value:
        _line(console, E_VALUE)
    if any(group.has_changed for groups in result.groups.values() for group in groups):
        _line(console, CHANGED)
    _line(console, TRUTH)
    console.print()
    _line(
        console, f"Next: {result.next.configuration} has the proposed configuration. Read its comments, then:"
    )
    for command in result.next.commands:
        _line(console, f"  {command}")
    if result.next.note:
        _line(console, result.next.note)


def figures(result: TrialResult) -> list[tuple[str, str]]:
    """Figures of a trial with their names."""
    rows, labels = result.rows, result.labels
    part = "the whole file" if rows.is_whole else "stopped before the end of the file"
    speed = f" ({rows.sent / rows.seconds:,.0f} a second)" if rows.seconds else ""
    length = duration(rows.seconds) if rows.seconds >= _SHORT_SECONDS else f"{rows.seconds:.1f} s"
    found = [
        ("rows streamed", f"{rows.sent:,} in {length}{speed}; {part}"),
        ("bad rows", bad_rows(result)),
        ("labels", f"{labels.answered:,} of a budget of {labels.budget:,}, {_who(result)}"),
    ]
    if labels.cost is not None:
        found.append(("cost of labels", f"{labels.cost * labels.answered:,.2f} at {labels.cost:g} each"))
    found += [("groups reported", reported(result)), *_lowest(result), ("coverage", result.coverage)]
    found.append(("labels drawn at random", _random(result)))
    return found


def _random(result: TrialResult) -> str:
    if result.random is not None:
        return result.random.sentence(result.labels.cost)
    if result.labels.answering is None:
        return "not compared: that takes true classes of rows that you did not label"
    return f"not compared: the group with the lowest estimate has fewer than {FEWEST_LABELS} labels"


def reported(result: TrialResult) -> str:
    """How many things Credence reports of groups."""
    if result.reports:
        return f"{len(result.reports):,}"
    return "none" if result.threshold is None else f"none, with the threshold {result.threshold:.1%}"


def bad_rows(result: TrialResult) -> str:
    """How many rows were left out, and why."""
    refused = result.rows.refused
    if not refused:
        return "none"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in refused.items())
    return f"{sum(refused.values()):,} left out: {reasons}"


def _who(result: TrialResult) -> str:
    answering = result.labels.answering
    if answering is None:
        return "answered by you"
    parts = ["answered from the file's true classes"]
    if answering.delay_seconds:
        parts.append(f"{answering.delay_seconds:g} s after each request")
    if answering.noise:
        parts.append(f"{answering.noise:.1%} of them wrong on purpose")
    return ", ".join(parts)


def _lowest(result: TrialResult) -> list[tuple[str, str]]:
    """The group with the lowest estimate, and what to do if it is open whether it is below the threshold."""
    lowest = result.lowest
    if lowest is None:
        return []
    reading = lowest.reading
    text = f"{lowest.name}: {reading.mean:.1%} ({reading.lower:.1%} to {reading.upper:.1%})"
    if result.threshold is not None and not lowest.is_below and reading.lower < result.threshold:
        text += (
            f"; open whether it is below {result.threshold:.1%}: more labels (--labels) or fewer groupings "
            "(--attributes) would tell"
        )
    return [("lowest estimate", text)]


def truth_cell(group: TrialGroup) -> str:
    """The truth of a group, or why it is not shown."""
    if group.truth is not None:
        return f"{group.truth:.1%}"
    if group.file is None or not group.file.with_truth:
        return "not known"
    return f"under {FEWEST_ROWS} rows"


def inside_cell(group: TrialGroup) -> str:
    """Whether the interval holds the truth."""
    if group.compared is None:
        return "-"
    return "yes" if group.compared.is_inside else "no"


def _table(groups: Sequence[TrialGroup]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("group")
    for title in ("share", "labels", "accuracy", "95% interval", "truth", "inside"):
        table.add_column(title, justify="right")
    for group in sorted(groups, key=lambda each: each.reading.mean)[:_MOST_GROUPS]:
        reading = group.reading
        table.add_row(
            Text(group.name),
            f"{reading.share:.1%}",
            f"{reading.labels:.0f}",
            Text(f"{reading.mean:.1%}", "bold red" if group.is_below else ""),
            f"{reading.lower:.1%} - {reading.upper:.1%}{'*' if group.has_changed else ''}",
            truth_cell(group),
            inside_cell(group),
        )
    return table


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
