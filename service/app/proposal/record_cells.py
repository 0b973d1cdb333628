"""Records of another shape as rows of a sample: their columns are paths into the records."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from consumers.formats.native import AwareTime
from service.app.proposal.column_tally import are_probabilities
from service.app.proposal.usual_names import RECORD_NAMES, usual_name
from service.domain.errors import BadMessage
from service.domain.field_mapping import PER_SECOND, TimeUnit

_MOST_STEPS: Final = 4
"""Steps of the longest path."""

_MOST_LISTS: Final = 8
"""Lists in one another, each the first element of the next."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DIGITS: Final = re.compile(r"\d{9,20}")

_FIRST, _LAST = 946_684_800, 4_102_444_800
"""The years 2000 and 2100 in seconds since 1970."""


class RecordCells:
    """Makes cells of records.

    Args:
        time: path of the time that the user names; empty for none.

    Attributes:
        unreadable_times: columns with times as text that a mapping refuses.
        units: of the times of a column that are numbers since the epoch; `None` is among them if it has other
            times, too.
        class_names: those by which a column has probabilities, one tuple for each set of names that came.
        lengths: the most elements of a list of which a column has the first alone, by the list's path.
    """

    def __init__(self, time: str = "") -> None:
        self._named_time = time
        self.unreadable_times = set[str]()
        self.units: dict[str, set[TimeUnit | None]] = defaultdict(set)
        self.class_names: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        self.lengths: dict[str, int] = defaultdict(int)

    def of(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Cells by path, without those that are null.

        Args:
            record: its decoded `value`, and texts of its `headers` and `key`.

        Raises:
            BadMessage: lists are nested too deeply.
        """
        cells = dict(self._cells("$", record["value"], 0))
        cells |= {f"$headers{_step(name)}": text for name, text in record["headers"].items()}
        return cells | ({"$key": record["key"]} if "key" in record else {})

    def problem(self, path: str, field: str) -> str:
        """Why a mapping cannot read a field from a path; empty if it can."""
        if field == "time" and path in self.unreadable_times:
            return (
                "some of its times have no time zone or are not RFC 3339 (2026-01-31T12:00:00Z), which "
                "mappings need"
            )
        if field == "time" and len(self.units[path]) > 1:
            return "some of its values are times in another unit, or as text"
        if field == "probabilities" and len(self.class_names[path]) > 1:
            return "its classes are not the same in all records"
        return ""

    def names_of(self, path: str) -> list[str]:
        """The classes whose probabilities a path has by name, in the order of its cells; empty without."""
        return [*next(iter(self.class_names.get(path, ())), ())]

    def _cells(self, path: str, found: Any, steps: int) -> Iterator[tuple[str, Any]]:
        match found:
            case None:
                return
            case dict():
                yield from self._of_object(path, found, steps)
            case list():
                yield from self._of_list(path, found, steps)
            case bool():
                yield path, str(found).lower()  # as a mapping reads it
            case _:
                yield path, self._time(path, found)

    def _of_object(self, path: str, found: Mapping[str, Any], steps: int) -> Iterator[tuple[str, Any]]:
        if _are_numbers([*found.values()]) and are_probabilities([*found.values()]):
            names = tuple(sorted(found))
            if len(self.class_names[path]) <= 1:  # more say no more
                self.class_names[path].add(names)
            yield path, [found[name] for name in names]
        elif steps < _MOST_STEPS:
            for name, value in found.items():
                yield from self._cells(f"{path}{_step(name)}", value, steps + 1)

    def _of_list(self, path: str, found: Sequence[Any], steps: int) -> Iterator[tuple[str, Any]]:
        if _are_numbers(found):
            yield path, found
        elif found:
            if path.endswith("[0]" * _MOST_LISTS):
                raise BadMessage("malformed_json", f"more than {_MOST_LISTS} lists are nested in one another")
            self.lengths[path] = max(self.lengths[path], len(found))
            yield from self._cells(f"{path}[0]", found[0], steps)

    def _time(self, path: str, found: Any) -> Any:
        """A number since the epoch as text, where a time is expected; else what it is."""
        if path != self._named_time and usual_name(path) not in RECORD_NAMES["time"]:
            return found
        number = int(found) if isinstance(found, str) and _DIGITS.fullmatch(found) else found
        unit = _unit(number) if isinstance(number, int | float) else None
        self.units[path].add(unit)
        if unit is None:
            if isinstance(found, str) and not _is_aware_time(found):
                self.unreadable_times.add(path)
            return found
        return datetime.fromtimestamp(number / PER_SECOND[unit], UTC).isoformat()


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether these are numbers, and at least two."""
    return len(values) > 1 and all(type(value) in {int, float} for value in values)


def _is_aware_time(text: str) -> bool:
    """Whether the native decoder reads a text as a time."""
    try:
        msgspec.convert(text, AwareTime)
    except msgspec.ValidationError:
        return False
    return True


def _unit(number: float) -> TimeUnit | None:
    """The unit in which a number is a time of this century."""
    # Not divided: integers may be too large for that.
    units = PER_SECOND.items()
    return next((unit for unit, ticks in units if _FIRST * ticks <= number < _LAST * ticks), None)


def _step(name: str) -> str:
    if _NAME.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"
