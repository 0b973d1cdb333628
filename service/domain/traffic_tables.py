"""Specifications of the traffic tables: their rows and columns, purpose and size.

A prediction counts once in every table, so each is exact by itself, and memory grows with the sum of the
tables' sizes. A row is a value of one attribute; the table of all traffic has a single row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.domain.cells import AGREE, CHALLENGE, DISAGREE, MISSING, CellSpace, digits

ALL_TRAFFIC = ""
"""Attribute of the table of all traffic, and name of its only row."""

Columns = Literal["class_bins", "bins", "classes", "selected_bins", "challenge"]
"""Columns of a table: predicted classes times score bins (class by class), score bins, predicted classes,
whether the positive class is predicted times score bins (those of other classes first), or whether a
challenger agrees (`CHALLENGE_COLUMNS`)."""

CHALLENGE_COLUMNS = (AGREE, DISAGREE, MISSING)

MOST_MIX_ENTRIES = 2_000_000
"""Largest table of values by classes that is counted, for drift: 16 MB a partition."""

_WEIGHTED_BYTES, _COUNTED_BYTES = 24, 8


@dataclass(frozen=True)
class TableSpec:
    """One table.

    Attributes:
        attribute: whose values are the rows; or `ALL_TRAFFIC`.
        columns: what the columns are.
        width: number of columns.
        is_weighted: whether it has decayed weights and weighted sums of scores beside counts.
        rows: most rows, those of reserved values included.
        purpose: the feature that needs it.
        meaning: differs when the same columns would mean something else.
    """

    attribute: str
    columns: Columns
    width: int
    is_weighted: bool
    rows: int
    purpose: str
    meaning: str

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, in memory and in Redis."""
        return self.width * (_WEIGHTED_BYTES if self.is_weighted else _COUNTED_BYTES)

    @property
    def most_bytes(self) -> int:
        """Bytes of the full table, in one partition."""
        return self.rows * self.row_bytes


def tables(space: CellSpace) -> tuple[TableSpec, ...]:
    """All tables of a model, that of all traffic first."""
    class_bins = len(space.classes) * space.bin_count
    bins, classes = digits(space.score_edges), digits(space.classes)
    found = [
        TableSpec(ALL_TRAFFIC, "class_bins", class_bins, True, 1, "groups by class and score", bins + classes)
    ]
    for attribute in space.attributes:
        if space.voters is not None and attribute == space.voters[0]:
            voters = space.voters[1]
            rows = voters.pattern_count + 2
            meaning = bins + classes + digits(voters.name)
            found.append(
                TableSpec(attribute, "class_bins", class_bins, True, rows, "groups by votes", meaning)
            )
            continue
        rows = space.bounds.attribute_values + 2
        found.append(TableSpec(attribute, "bins", space.bin_count, True, rows, "accuracy by value", bins))
        if space.by_class and rows * len(space.classes) <= MOST_MIX_ENTRIES:
            found.append(
                TableSpec(attribute, "classes", len(space.classes), False, rows, "drift of classes", classes)
            )
        if space.selections is not None and attribute in space.selections.attributes:
            meaning = bins + digits(space.selections.positive)
            found.append(
                TableSpec(attribute, "selected_bins", 2 * space.bin_count, True, rows, "error rates", meaning)
            )
        if space.challenge is not None:
            width, meaning = len(CHALLENGE_COLUMNS), digits([CHALLENGE, space.challenge.name])
            found.append(TableSpec(attribute, "challenge", width, True, rows, "challenger by value", meaning))
    return tuple(found)


def most_table_bytes(space: CellSpace) -> int:
    """Bytes of all tables of a model when full, in one partition."""
    return sum(spec.most_bytes for spec in tables(space))
