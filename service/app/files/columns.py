"""Which column of a file is which field of a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.app.files.rows import UnusableFileError
from service.app.plain_text import plain
from service.domain.errors import misuse

ATTRIBUTE, VOTE, PROBABILITY = "attributes.", "votes.", "probability."
"""Beginnings of fields of which there are several; what follows is the name of an attribute, and so on."""

_PREFIXES = (ATTRIBUTE, VOTE, PROBABILITY)

_SHOWN_COLUMNS = 10
_SHOWN_CHARACTERS = 64


@dataclass(frozen=True)
class Columns:
    """The columns of fields: those that have their names, but for those that the user has renamed.

    Attributes:
        fields: of the message.
        prefixed: whether it also has fields of attributes, votes and probabilities.
        renamed: column by field; empty if the field is not to be read.
    """

    fields: Collection[str]
    prefixed: bool
    renamed: Mapping[str, str]

    @classmethod
    def parse(cls, options: Iterable[str], fields: Collection[str], *, prefixed: bool) -> Columns:
        """From the options `FIELD=COLUMN` of the command line.

        Raises:
            ConfigurationError: an option names no field, or a field twice.
        """
        renamed: dict[str, str] = {}
        for option in options:
            field, column = cls._split(option, fields, prefixed=prefixed)
            if field in renamed:
                raise misuse(f"--column {option}", f"the column of {field} is given twice")
            renamed[field] = column
        return cls(fields, prefixed, renamed)

    @staticmethod
    def _split(option: str, fields: Collection[str], *, prefixed: bool) -> tuple[str, str]:
        beginnings = _PREFIXES if prefixed else ()
        # The name of a class may contain the sign; then the last one separates.
        at = option.rfind("=") if option.startswith(PROBABILITY) else option.find("=")
        field, column = option[: max(at, 0)], option[at + 1 :]
        if field in fields or any(field.startswith(each) and field != each for each in beginnings):
            return field, column
        names = ", ".join([*fields, *(f"{each}NAME" for each in beginnings)])
        raise misuse(f"--column {option}", f"must be FIELD=COLUMN; fields: {names}")

    def of(self, field: str) -> str | None:
        """The column of a field, whether or not the file has it; None if it is not to be read."""
        return self.renamed.get(field, field) or None

    def in_file(self, field: str, available: Collection[str] | None) -> str:
        """The same; empty too if a file says its columns (`available`), and has none of that name."""
        column = self.of(field) or ""
        return column if available is None or column in available else ""

    def of_names(self, prefix: str, available: Iterable[str]) -> dict[str, str]:
        """Columns by what follows a prefix: those of the file that have it, and the renamed ones."""
        found = {name.removeprefix(prefix): name for name in available if name.startswith(prefix)}
        for field, column in self.renamed.items():
            if field.startswith(prefix):
                found[field.removeprefix(prefix)] = column
        return {name: column for name, column in found.items() if name and column}

    def left_out(self, prefix: str) -> set[str]:
        """What follows a prefix in the fields that are not to be read."""
        return {
            field.removeprefix(prefix)
            for field, column in self.renamed.items()
            if field.startswith(prefix) and not column
        }

    def check(self, available: Sequence[str], source: str, *, used: Collection[str]) -> None:
        """Check the columns that a file says before its rows, of which some are `used`.

        Raises:
            UnusableFileError: one of the command line is missing, or one that is used is there twice.
        """
        for field, column in self.renamed.items():
            if column and column not in available:
                raise self.missing_error(field, available, source)
        if twice := [name for name, count in Counter(available).items() if count > 1 and name in used]:
            raise UnusableFileError(source, f"there is more than one column {listed(twice)}")

    def missing_error(self, field: str, available: Sequence[str], source: str) -> UnusableFileError:
        """What to say of a file that has no column for a field."""
        column = self.of(field)
        what = field if column in (None, field) else f"{plain_name(column)} ({field})"
        # Without a line of names, the first row would be printed here.
        return UnusableFileError(
            source,
            f"there is no column {what} among the {len(available):,} columns that the file names. Name one "
            f"with --column {field}=COLUMN; the first line of csv must name the columns",
        )


def listed(columns: Sequence[str]) -> str:
    """Names of some columns for people; control characters are escaped."""
    shown = ", ".join(plain_name(name) for name in columns[:_SHOWN_COLUMNS])
    more = len(columns) - _SHOWN_COLUMNS
    return shown if more <= 0 else f"{shown} and {more:,} more"


def plain_name(name: str) -> str:
    """The name of a column for people: short, and without control characters."""
    text = plain(name)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
