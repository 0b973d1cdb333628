"""What the cells of one column are, counted while rows are read, in bounded memory."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.app.files.cells import parsed, to_number, to_numbers, to_text, to_time
from service.app.files.rows import BadCell
from service.domain.messages import PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE

MOST_VALUES: Final = 10_000
"""Different values of a column that are counted: as many as a model may have classes."""

LONG_TEXT: Final = 64
"""Characters; longer values are folded by default (`bounds.attribute_length`)."""

_KEPT_CHARACTERS = 256


@dataclass(frozen=True)
class Numbers:
    """The cells of a column of numbers; rows are those of the extremes."""

    lowest: float
    lowest_row: int
    highest: float
    highest_row: int
    mean: float


@dataclass(frozen=True)
class ColumnProfile:
    """A column of the sample.

    Attributes:
        name: as the file has it.
        unit: what rows are numbered by.
        rows: of the sample.
        filled: rows that have a value.
        counts: rows of every value; None if there are more than `MOST_VALUES`, or too many in all columns.
        distinct: different values; without `counts` at least so many.
        repeats: whether any value came twice, as far as values were counted.
        numbers: if every value is a number.
        not_number: row of the first value that is none; 0 without one.
        not_text: row of the first value that cannot be an attribute or a class; 0 without one.
        times: the first and last time (RFC 3339, UTC), if every value is one.
        lists: length of the lists, if every value is one of as many probabilities.
        lists_problem: why they are none; empty if they are.
        is_nested: whether values are lists or objects.
        long_share: share of the values that are longer than `LONG_TEXT`.
    """

    name: str
    unit: str
    rows: int
    filled: int
    counts: Mapping[str, int] | None
    distinct: int
    repeats: bool
    numbers: Numbers | None
    not_number: int
    not_text: int
    times: tuple[str, str] | None
    lists: int | None
    lists_problem: str
    is_nested: bool
    long_share: float

    @property
    def missing_share(self) -> float:
        """Share of the rows without a value."""
        return 1 - self.filled / self.rows if self.rows else 0.0

    @property
    def is_unique(self) -> bool:
        """Whether every value is different, as in a column of ids."""
        return self.filled > 1 and not self.repeats


class ColumnTally:
    """Counts the cells of one column.

    Attributes:
        counts: rows by value, until there are too many.
    """

    def __init__(self, name: str, unit: str) -> None:
        self.name = name
        self._unit = unit
        self.filled = 0
        self.counts: Counter[str] | None = Counter()
        self._distinct = self._long = 0
        self._repeats = self._is_nested = False
        self._total = 0.0
        self._numbers: Numbers | None = None
        self._not_number = self._not_text = 0
        self._are_times = True
        self._times: tuple[str, str] | None = None
        self._width: int | None = None
        self._lists_problem = ""

    def add(self, cell: Any, number: int) -> None:
        """Count the cell of a row."""
        try:
            value = parsed(cell, self.name)
        except BadCell:
            value = math.inf  # the only JSON that is refused: a number beyond all bounds
        self.filled += 1
        # A list in CSV is the text of JSON.
        is_list = isinstance(value, list) or (isinstance(value, str) and value.startswith("["))
        self._is_nested |= is_list or isinstance(value, (dict, tuple))
        self._add_text(cell, value, number)
        self._add_number(value, number)
        self._add_time(value)
        if not self._lists_problem:
            self._add_list(cell if is_list else None, number)

    def close(self) -> None:
        """Count no further values."""
        self.counts = None

    def profile(self, rows: int) -> ColumnProfile:
        """What was counted in so many rows."""
        numbers = self._numbers
        if self._not_number or numbers is None:
            numbers = None
        else:
            mean = self._total / self.filled
            numbers = Numbers(numbers.lowest, numbers.lowest_row, numbers.highest, numbers.highest_row, mean)
        return ColumnProfile(
            self.name,
            self._unit,
            rows,
            self.filled,
            self.counts,
            self._distinct,
            self._repeats,
            numbers,
            self._not_number,
            self._not_text,
            self._times if self._are_times else None,
            None if self._lists_problem else self._width,
            self._lists_problem,
            self._is_nested,
            self._long / self.filled if self.filled else 0.0,
        )

    def _add_text(self, cell: Any, value: Any, number: int) -> None:
        try:
            text = to_text(cell, self.name)
        except BadCell:
            self._not_text = self._not_text or number
            text = str(value)
        self._long += len(text) > LONG_TEXT
        if self.counts is None:
            return
        if len(text) > _KEPT_CHARACTERS:
            digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()
            text = f"{text[:LONG_TEXT]}…{digest}"
        self.counts[text] += 1
        self._repeats |= self.counts[text] > 1
        if len(self.counts) > MOST_VALUES:
            self.close()
        else:
            self._distinct = len(self.counts)

    def _add_number(self, value: Any, number: int) -> None:
        if self._not_number:
            return
        try:
            here = to_number(value, self.name)
        except BadCell:
            self._not_number = number
            return
        self._total += here
        found = self._numbers or Numbers(math.inf, 0, -math.inf, 0, 0.0)
        if here < found.lowest:
            found = Numbers(here, number, found.highest, found.highest_row, 0.0)
        if here > found.highest:
            found = Numbers(found.lowest, found.lowest_row, here, number, 0.0)
        self._numbers = found

    def _add_time(self, value: Any) -> None:
        if not self._are_times:
            return
        try:
            here = to_time(value, self.name)
        except BadCell:
            self._are_times = False
            return
        first, last = self._times or (here, here)
        self._times = min(first, here), max(last, here)

    def _add_list(self, cell: Any, number: int) -> None:
        if cell is None:
            self._lists_problem = f"{self._unit} {number:,} has no list"
            return
        try:
            values = to_numbers(cell, self.name)
        except BadCell as error:
            self._lists_problem = f"{self._unit} {number:,}: {error.detail}"
            return
        self._width = len(values) if self._width is None else self._width
        if len(values) != self._width:
            self._lists_problem = (
                f"{self._unit} {number:,} has {len(values)} numbers, those before it {self._width}"
            )
        elif not are_probabilities(values):
            self._lists_problem = f"{self._unit} {number:,}: the numbers are not probabilities that sum to 1"


def are_probabilities(values: list[float]) -> bool:
    """Whether numbers are in [0, 1] and sum to 1, as the contract tolerates."""
    inside = all(-SCORE_TOLERANCE <= value <= 1 + SCORE_TOLERANCE for value in values)
    return inside and abs(sum(values) - 1) <= PROBABILITY_SUM_TOLERANCE
