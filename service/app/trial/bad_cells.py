"""Leaves rows with bad scores out of a profile, so that a few of them do not spoil their column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from service.app.files.cells import to_number, to_numbers
from service.app.files.rows import BadCell, Row, Table
from service.app.proposal.usual_names import FAMILIES, USUAL, normalised
from service.domain.errors import BadMessage
from service.domain.messages import SCORE_TOLERANCE

MOST_BAD: Final = 0.5
"""Share of bad rows from which on the column is not what its name says."""


def without_bad_scores(given: Mapping[str, str]) -> Callable[[Table], Table]:
    """What marks rows whose score or probabilities are none as unreadable.

    Args:
        given: columns that the user names, by field; others go by their usual names.
    """

    def prepare(table: Table) -> Table:
        return Table(table.columns, _marked(table.rows, given), table.unit)

    return prepare


def _marked(rows: Iterator[Row], given: Mapping[str, str]) -> Iterator[Row]:
    for row in rows:
        problem = row.problem or _problem(row.cells, given)
        yield row if problem is row.problem else Row(row.number, row.cells, problem, row.size)


def _problem(cells: Mapping[str, Any], given: Mapping[str, str]) -> BadMessage | None:
    try:
        for name, cell in cells.items():
            if _is(name, "probabilities", given):
                numbers = to_numbers(cell, name)
            elif _is(name, "score", given) or name.startswith(_prefixes(given)):
                numbers = [to_number(cell, name)]
            else:
                continue
            if not all(-SCORE_TOLERANCE <= number <= 1 + SCORE_TOLERANCE for number in numbers):
                raise BadCell(name, "a probability lies outside [0, 1]", reason="invalid_score")
    except BadMessage as error:
        return error
    return None


def _is(name: str, field: str, given: Mapping[str, str]) -> bool:
    return name == given[field] if field in given else normalised(name) in USUAL[field]


def _prefixes(given: Mapping[str, str]) -> tuple[str, ...]:
    prefix = given.get("probabilities")
    return FAMILIES if prefix is None else (prefix,) if prefix else ()
