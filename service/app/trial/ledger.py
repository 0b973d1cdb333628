"""What a trial has sent: of every prediction its groups, its score and its true class."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.domain.groupings import ALL

UNKNOWN: Final = -1
"""Stands for a true class that the file does not have."""


class _Names:
    """Names of groups as numbers, in the order in which they first occur."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


@dataclass(frozen=True)
class Members:
    """The predictions of one grouping.

    Attributes:
        names: of its groups [G].
        groups: group of every prediction [n].
    """

    names: Sequence[str]
    groups: Indices


@dataclass(frozen=True)
class FileTruth:
    """What the file says of one group.

    Attributes:
        rows: that were sent.
        with_truth: those of them that have a true class.
        correct: those of these whose prediction is right.
    """

    rows: int
    with_truth: int
    correct: int

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions among those with a true class; None without any."""
        return self.correct / self.with_truth if self.with_truth else None


class Ledger:
    """Grows by batches, and is read at the end. About 200 bytes for each prediction.

    One thread adds while another one asks for the true class of an item.

    Args:
        classes: of the model, in order.
        groupings: names, but for the one of all traffic.
    """

    def __init__(self, classes: Sequence[str], groupings: Iterable[str]) -> None:
        self._classes = classes
        self._names = {name: _Names() for name in groupings}
        self._groups = {name: array("i") for name in self._names}
        self._predicted = array("i")
        self._true = array("i")
        self._scores = array("d")
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._predicted)

    def add(
        self,
        *,
        items: Sequence[str],
        predicted: Sequence[int],
        scores: Sequence[float],
        true: Sequence[int],
        groups: dict[str, Sequence[str]],
    ) -> None:
        """Add predictions [n]: item, index of the class, score in [0, 1], index of the true class, groups."""
        first = len(self)
        for name, members in groups.items():
            self._groups[name].extend(map(self._names[name].number, members))
        self._scores.extend(scores)
        self._true.extend(true)
        self._predicted.extend(predicted)
        self._rows.update(zip(items, range(first, first + len(items)), strict=True))

    def true_class(self, item: str) -> str | None:
        """The true class of an item; None if the file does not have it."""
        row = self._rows.get(item)
        true = UNKNOWN if row is None else self._true[row]
        return None if true == UNKNOWN else self._classes[true]

    def rows_of(self, items: Iterable[str]) -> Indices:
        """Positions of the predictions of items, each once, in their order."""
        found = dict.fromkeys(row for item in items if (row := self._rows.get(item)) is not None)
        return np.fromiter(found, dtype=np.intp, count=len(found))

    @property
    def scores(self) -> Floats:
        """Score of every prediction [n]."""
        return np.array(self._scores, dtype=np.float64)

    @property
    def has_truth(self) -> Flags:
        """Whether the true class of a prediction is known [n]."""
        flags: Flags = np.array(self._true, dtype=np.intp) != UNKNOWN
        return flags

    @property
    def correct(self) -> Flags:
        """Whether a prediction is right [n]; not where its true class is unknown."""
        flags: Flags = np.array(self._true, dtype=np.intp) == np.array(self._predicted, dtype=np.intp)
        return flags

    def members(self, grouping: str) -> Members:
        """The groups of a grouping, or of all traffic, and who is in which."""
        if grouping == ALL:
            return Members([ALL], np.zeros(len(self), dtype=np.intp))
        return Members(self._names[grouping].names, np.array(self._groups[grouping], dtype=np.intp))

    def truths(self, grouping: str) -> dict[str, FileTruth]:
        """What the file says of every group of a grouping."""
        members = self.members(grouping)
        count = len(members.names)
        columns = [
            np.bincount(members.groups[flags], minlength=count).tolist()
            for flags in (np.ones(len(self), dtype=np.bool_), self.has_truth, self.correct)
        ]
        return {name: FileTruth(*numbers) for name, *numbers in zip(members.names, *columns, strict=True)}
