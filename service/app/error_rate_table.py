"""The table of error rates in the terminal: those of every group, and how far apart they are."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from service.app.terminal_tables import FAILED, table, text
from service.serving.documents.base import Interval
from service.serving.documents.error_rates import ErrorRateState, RateGroup, RateState
from service.serving.documents.words import cell_of_interval, threshold
from service.statistics.rates.measures import RATES


def rate_table(name: str, found: ErrorRateState) -> Table:
    """A row for every group, then the difference and the ratio; limits are below what they are of."""
    columns = ("labels", *(one.rate.replace("_", " ") for one in found.rates))
    shown = table(f"{name}: error rates for {found.positive_class}, %", "group", columns)
    for group in found.groups:
        cells = (_of_group(group, one) for one in found.rates)
        shown.add_row(text(group.group), f"{group.labels:.0f}", *cells)
    shown.add_row("Difference", "", *map(_difference, found.rates))
    shown.add_row("Ratio", "", *map(_ratio, found.rates))
    return shown


def _of_group(group: RateGroup, of: RateState) -> Text:
    return _cell(
        group.rates.get(of.rate),
        "at least" if RATES[of.rate].is_good else "at most",
        group.limits.get(of.rate),
        is_missed=of.rate in group.violated,
        is_confirmed=of.rate in group.confirmed,
    )


def _difference(of: RateState) -> Text:
    return _cell(
        of.difference,
        "at most",
        of.max_difference,
        is_missed=of.differs_too_much,
        is_confirmed=of.difference_confirmed,
    )


def _ratio(of: RateState) -> Text:
    return _cell(
        of.ratio, "at least", of.min_ratio, is_missed=of.ratio_too_low, is_confirmed=of.ratio_confirmed
    )


def _cell(
    found: Interval | None, end: str, limit: float | None, *, is_missed: bool, is_confirmed: bool
) -> Text:
    """An interval, and the limit on a line below it, which is highlighted if it is missed."""
    cell = Text("" if found is None else cell_of_interval(found))
    if limit is not None:
        said = f"\n{end} {threshold(limit)}{': confirmed' if is_confirmed else ''}"
        cell.append(said, FAILED if is_missed else "dim")
    return cell
