"""The report of a trial as one HTML file: nothing is loaded from elsewhere, and no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from service.app.trial.results import TrialGroup, TrialResult
from service.app.trial.terminal import CHANGED, E_VALUE, TRUTH, figures, inside_cell, truth_cell
from service.domain.groupings import ALL

_STYLE: Final = Path(__file__).with_name("report.css")
_WIDTH: Final = 180.0
_HEIGHT: Final = 18.0
_MARGIN: Final = 5.0
"""Of the picture of an interval, in pixels."""


def html_report(result: TrialResult) -> str:
    """The whole page."""
    title = f"Trial of {result.source}"
    made = f"{datetime.fromtimestamp(result.at, UTC):%Y-%m-%d %H:%M UTC}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">Model {escape(result.model)}, {made}. {escape(_lead(result))}</p>',
        _section("In figures", _figures(result)),
        *([_section("Groups that Credence reports", _reports(result))] if result.reports else []),
        _section("What is compared", f"<p>{escape(TRUTH)}</p>{_legend(result)}"),
        *(_section(_heading(name), _table(name, groups, result)) for name, groups in result.groups.items()),
        _section("Rows that were left out", _problems(result)),
        _section("What to configure next", _next(result)),
    ]
    style = _STYLE.read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Nothing can be loaded, whatever the names of groups are.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Credence: {escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _section(heading: str, content: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>"


def _reports(result: TrialResult) -> str:
    return _list(result.reports) + (f"<p>{escape(E_VALUE)}</p>" if result.has_e_value else "")


def _lead(result: TrialResult) -> str:
    coverage = result.coverage
    return f"{coverage[:1].upper()}{coverage[1:]}." if result.compared else "The truth is not known."


def _heading(grouping: str) -> str:
    return "All traffic" if grouping == ALL else f"By {grouping}"


def _figures(result: TrialResult) -> str:
    rows = "".join(
        f"<div><dt>{escape(what[:1].upper() + what[1:])}</dt><dd>{escape(text)}</dd></div>"
        for what, text in figures(result)
    )
    return f"<dl>{rows}</dl>"


def _legend(result: TrialResult) -> str:
    target = "" if result.threshold is None else f" Dashed line: the threshold, {result.threshold:.1%}."
    changed = any(group.has_changed for groups in result.groups.values() for group in groups)
    star = f" {CHANGED}" * changed
    return (
        "<p>In the pictures, the bar is the 95% interval, the dot is the posterior mean, and the diamond is "
        f"the truth.{target} Each picture spans the same scale within its table.{star}</p>"
    )


def _table(name: str, groups: Sequence[TrialGroup], result: TrialResult) -> str:
    lowest = _lowest(groups, result.threshold)
    titles = ("Group", "Share", "Rows", "Labels", "Accuracy", "95% interval", "Truth", "Inside")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    scale = f'<th scope="col"><span class="scale"><span>{lowest:.0%}</span><span>100%</span></span></th>'
    body = "\n".join(
        _row(group, lowest, result.threshold) for group in sorted(groups, key=lambda each: each.reading.mean)
    )
    caption = "the least accurate first" if name != ALL else "all groups together"
    return (
        f'<div class="wide" role="region" aria-label="{escape(_heading(name))}" tabindex="0"><table>\n'
        f"<caption>Accuracy of current predictions, {caption}</caption>\n"
        f"<thead><tr>{head}{scale}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _row(group: TrialGroup, lowest: float, threshold: float | None) -> str:
    reading = group.reading
    star = " *" if group.has_changed else ""
    rows = "-" if group.file is None else f"{group.file.rows:,}"
    below = ' <span class="below">below threshold</span>' if group.is_below else ""
    inside = inside_cell(group)
    cells = (
        f"{reading.share:.1%}",
        rows,
        f"{reading.labels:.0f}",
        f"{reading.mean:.1%}",
        f"{reading.lower:.1%} to {reading.upper:.1%}{star}",
        truth_cell(group),
    )
    numbers = "".join(f"<td>{cell}</td>" for cell in cells)
    return (
        f'<tr><th scope="row">{escape(group.name)}{below}</th>{numbers}'
        f'<td class="{"no" if inside == "no" else "yes"}">{inside}</td>'
        f"<td>{_picture(group, lowest, threshold)}</td></tr>"
    )


def _lowest(groups: Iterable[TrialGroup], threshold: float | None) -> float:
    """Where the scale of a table begins: a tenth, at or below all that it shows."""
    ends = [each.reading.lower for each in groups]
    ends += [each.truth for each in groups if each.truth is not None]
    ends += [] if threshold is None else [threshold]
    return int(10 * min(ends, default=0.0)) / 10


def _picture(group: TrialGroup, lowest: float, threshold: float | None) -> str:
    """An interval with its mean and the truth; the cells beside it say the same."""

    def at(accuracy: float) -> float:
        share = (accuracy - lowest) / (1 - lowest) if lowest < 1 else 1.0
        return _MARGIN + min(max(share, 0.0), 1.0) * (_WIDTH - 2 * _MARGIN)

    reading, middle = group.reading, _HEIGHT / 2
    left, right = at(reading.lower), at(reading.upper)
    parts = [
        f'<line class="axis" x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{middle}" y2="{middle}"/>',
    ]
    if threshold is not None:
        x = at(threshold)
        parts.append(f'<line class="threshold" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}"/>')
    parts.append(
        f'<rect class="interval" x="{left:.1f}" y="{middle - 3}" width="{max(right - left, 1):.1f}" '
        'height="6" rx="3"/>'
    )
    parts.append(f'<circle class="mean" cx="{at(reading.mean):.1f}" cy="{middle}" r="4"/>')
    if group.truth is not None:
        x = at(group.truth)
        parts.append(f'<path class="truth" d="M{x:.1f} {middle - 6}l4.5 6l-4.5 6l-4.5 -6z"/>')
    size = f'width="{_WIDTH:g}" height="{_HEIGHT:g}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}"'
    return f'<svg aria-hidden="true" {size}>{"".join(parts)}</svg>'


def _problems(result: TrialResult) -> str:
    rows = result.rows
    total = sum(rows.refused.values())
    notes = _list(rows.notes) if rows.notes else ""
    if not total:
        return f"<p>None of {rows.read:,} rows.</p>{notes}"
    reasons = _list(f"{reason}: {count:,}" for reason, count in rows.refused.items())
    return (
        f"<p>{total:,} of {rows.read:,} rows are bad, by reason:</p>{reasons}"
        f"<p>The first {len(rows.problems)}:</p>{_list(rows.problems)}{notes}"
    )


def _next(result: TrialResult) -> str:
    steps = result.next
    commands = "\n".join(escape(command) for command in steps.commands)
    return (
        f"<p><code>{escape(steps.configuration)}</code> has the configuration that Credence proposes for "
        "this file; every key has a comment that says why. It requests labels for:</p>"
        f"{_list(steps.assessments)}<p>Name your Kafka and Redis in it, then run:</p>"
        f'<pre tabindex="0"><code>{commands}</code></pre>'
        + (f"<p>{escape(steps.note)}</p>" if steps.note else "")
    )


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
