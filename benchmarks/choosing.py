"""Days until a fault is found, by budget, groups and half-life: by arithmetic, for docs/choosing.md."""

from __future__ import annotations

import argparse
from typing import Final

import numpy as np
from scipy import special

from service.replay.tables import Cell, Table, print_tables
from service.statistics.detection_rules import PosteriorRule
from service.statistics.detection_time import (
    Delay,
    Detection,
    Fault,
    Labelling,
    PolicyFamily,
    Rules,
    days_to_detection,
)

BEFORE: Final = 0.95
THRESHOLD: Final = 0.90
DROP: Final = 0.15
GROUPS: Final = (2, 8, 20)
BUDGETS: Final = (20, 50, 100, 200, 500)
RUN_LENGTH: Final = 500.0
HALF_LIVES: Final = (None, 30.0, 7.0, 2.0)
_WIDE: Final = 2 * float(special.ndtri(0.975))


def found(
    groups: int,
    per_day: float,
    policy: PolicyFamily = "adaptive",
    *,
    half_life_days: float | None = None,
    drop: float = DROP,
    run_length: float | None = RUN_LENGTH,
) -> Detection:
    """Days until the drop in one of some equally large groups is found."""
    labelling = Labelling(
        np.full(groups, 1 / groups),
        per_day,
        policy,
        half_life_days=half_life_days,
        run_length=run_length,
    )
    return days_to_detection(Fault(BEFORE, drop), labelling, Rules(THRESHOLD))


def width(groups: int, per_day: float, half_life_days: float | None, run_length: float | None) -> float:
    """Width of the 95% interval of a healthy group after 30 days, in points."""
    rate = per_day / groups
    rule = PosteriorRule(BEFORE, THRESHOLD, groups, 30 * rate, 30.0, half_life_days, run_length)
    return 100 * _WIDE * float(rule.healthy.deviation[0])


def by_budget() -> Table:
    """Budgets and groups."""
    rows = []
    for per_day in BUDGETS:
        each = [found(groups, per_day, policy) for groups in GROUPS for policy in ("adaptive", "even")]
        rows.append((str(per_day), tuple(_cell(days.alert.median) for days in each)))
    columns = tuple(f"{groups} groups, {how}" for groups in GROUPS for how in ("weakest first", "evenly"))
    return _table("days until the alert, median", "labels a day", columns, rows)


def by_half_life() -> Table:
    """Half-lives of labels, with 8 groups and 200 labels a day, with change points and without."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run_length in (RUN_LENGTH, None):
        for half_life in HALF_LIVES:
            days = found(8, 200, "even", half_life_days=half_life, run_length=run_length)
            length = "none" if half_life is None else f"{half_life:g} days"
            name = f"{length}, change points {'off' if run_length is None else 'on'}"
            rows.append((name, (*_cells(days.alert), width(8, 200, half_life, run_length))))
    columns = ("alert, median", "alert, 90%", "interval, points")
    return _table("days by half-life: 8 groups, 200 labels a day, evenly", "half-life", columns, rows)


def by_drop() -> Table:
    """Sizes of drops, with 8 groups and 100 labels a day to the weakest first."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for drop in (0.08, 0.1, 0.15, 0.2, 0.3):
        days = found(8, 100, drop=drop)
        rows.append((f"{100 * drop:g} points", (*_cells(days.alert), *_cells(days.confirmed))))
    columns = ("alert, median", "alert, 90%", "confirmed, median", "confirmed, 90%")
    return _table("days by drop: 8 groups, 100 labels a day, weakest first", "drop", columns, rows)


def _cells(delay: Delay) -> tuple[Cell, Cell]:
    return _cell(delay.median), _cell(delay.late)


def _cell(days: float) -> Cell:
    return days if np.isfinite(days) else None


def _table(
    title: str, corner: str, columns: tuple[str, ...], rows: list[tuple[str, tuple[Cell, ...]]]
) -> Table:
    fault = f"From {100 * BEFORE:g}%, threshold {100 * THRESHOLD:g}%"
    notes = (f"{fault}; the drop is {100 * DROP:g} points unless given. -: not within two years.",)
    return Table(title, corner, columns, rows, notes=notes)


def main() -> None:
    """Compute, and print."""
    parser = argparse.ArgumentParser(description="Days until a fault is found, by what may be chosen.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [by_budget(), by_half_life(), by_drop()]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
