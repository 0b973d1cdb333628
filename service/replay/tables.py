"""Tables of results: printed in the terminal, written as Markdown or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import rich.table
from rich.console import Console
from rich.markup import escape

Cell = float | None


@dataclass(frozen=True)
class Report:
    """What was found: sentences, a configuration to use, and the figures behind them."""

    conclusion: list[str]
    tables: list[Table]
    configuration: str = ""  # in YAML; empty if none follows

    def document(self) -> Mapping[str, Any]:
        """For JSON."""
        return {
            "conclusion": self.conclusion,
            "configuration": self.configuration,
            "tables": [table.document() for table in self.tables],
        }


def print_reports(reports: Sequence[Report], *, as_json: bool, as_markdown: bool) -> None:
    """Print conclusions before tables: for a program, for a page, or for the terminal."""
    if as_json:
        sys.stdout.write(json.dumps([report.document() for report in reports], indent=2) + "\n")
        return
    for report in reports:
        for sentence in report.conclusion:
            sys.stdout.write(f"{sentence}\n")
        if report.configuration:
            fence = ("```yaml\n", "```\n") if as_markdown else ("", "")
            sys.stdout.write(f"\nUse:\n\n{fence[0]}{report.configuration}{fence[1]}")
        if report.conclusion or report.configuration:
            sys.stdout.write("\n")
        sys.stdout.flush()
        print_tables(report.tables, as_json=False, as_markdown=as_markdown)


def print_tables(tables: Sequence[Table], *, as_json: bool, as_markdown: bool) -> None:
    """Print for a program, which goes before a page; or for a page; or for the terminal."""
    if as_json:
        sys.stdout.write(json.dumps([table.document() for table in tables], indent=2) + "\n")
    elif as_markdown:
        sys.stdout.write("\n\n".join(table.markdown() for table in tables) + "\n")
    else:
        console = Console()
        for table in tables:
            console.print(table.rich(), "")


@dataclass(frozen=True)
class Table:
    """A table of figures."""

    title: str  # what it shows, with the unit
    corner: str  # what the rows are
    columns: tuple[str, ...]
    rows: list[tuple[str, tuple[Cell, ...]]]  # name of every row, and its figures; None where there is none
    marked: frozenset[str] = frozenset()  # columns whose lowest figure is the best one, and is marked
    notes: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def of(
        cls,
        title: str,
        corner: str,
        columns: Mapping[str, str],
        rows: Sequence[tuple[str, Mapping[str, Cell]]],
        notes: Sequence[str],
    ) -> Table:
        """A table of some of the figures that every row has by name; each column names its own."""
        shown = [(name, tuple(figures[key] for key in columns.values())) for name, figures in rows]
        return cls(title, corner, tuple(columns), shown, notes=notes)

    def cells(self) -> list[list[str]]:
        """All rows as text; the best figure of a marked column in **."""
        lowest = [self._lowest(place) for place in range(len(self.columns))]
        return [
            [name, *(_written(value, best) for value, best in zip(figures, lowest, strict=True))]
            for name, figures in self.rows
        ]

    def _lowest(self, place: int) -> float | None:
        if self.columns[place] not in self.marked or len(self.rows) == 1:
            return None
        return min((value for _, figures in self.rows if (value := figures[place]) is not None), default=None)

    def markdown(self) -> str:
        """As Markdown."""
        head = [self.corner, *self.columns]
        rule = ["---", *["---:"] * len(self.columns)]
        lines = [" | ".join(row) for row in (head, rule, *self.cells())]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([f"**{self.title}**", "", *(f"| {line} |" for line in lines), *notes])

    def rich(self) -> rich.table.Table:
        """For the terminal."""
        table = rich.table.Table(
            title=escape(self.title),
            title_justify="left",
            caption=escape("\n".join(self.notes)) or None,
            caption_justify="left",
        )
        table.add_column(self.corner, overflow="fold")
        for name in self.columns:
            table.add_column(name, justify="right", overflow="fold")
        for row in self.cells():
            table.add_row(*(_marked(cell) for cell in row))
        return table

    def document(self) -> Mapping[str, Any]:
        """For JSON."""
        return {
            "title": self.title,
            "rows": [
                {self.corner: name} | dict(zip(self.columns, figures, strict=True))
                for name, figures in self.rows
            ],
            "notes": list(self.notes),
        }


def _written(value: Cell, lowest: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"  # noqa: PLR2004 - three digits
    return f"**{text}**" if lowest is not None and value == lowest else text


def _marked(cell: str) -> str:
    return f"[bold]{cell.strip('*')}[/bold]" if cell.startswith("**") else cell
