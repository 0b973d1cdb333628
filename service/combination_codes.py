"""Codes of the attribute values of outcomes, and the numbers of the combinations that these are in now."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np
import numpy.typing as npt

from service.cells import MISSING, CellSpace, Combination
from service.combination_directory import CombinationDirectory

Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

NO_NUMBER = -1
"""Of values that have not been seen in traffic."""


class CombinationCodes:
    """Numbers combinations in the order in which outcomes bring them, and finds them in a directory.

    Where votes tell groups apart, and there is no traffic of some values without votes, those without get the
    number of the same values with some vote.

    Attributes:
        numbers: of every code, its combination's number or `NO_NUMBER` [codes].
        voteless: of every code, whether votes are missing that tell groups apart [codes].
        borrowed: of every code, whether its number is that of another vote [codes].
    """

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._attributes = space.attributes
        self._vote = None if space.voters is None else self._attributes.index(space.voters[0])
        self._codes: dict[tuple[str | None, ...], int] = {}
        self._raw: list[Combination] = []
        self._directory: list[Combination] = []
        self._looked_up = 0  # codes before this one have been, in that directory
        self.numbers: Indices = np.zeros(0, dtype=np.intp)
        self.voteless: Flags = np.zeros(0, dtype=np.bool_)
        self.borrowed: Flags = np.zeros(0, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._raw)

    def code(self, attributes: Mapping[str, str]) -> int:
        """Code of the attribute values that matter to cells; `settle` follows before it is looked up."""
        values = tuple(map(attributes.get, self._attributes))
        code = self._codes.setdefault(values, len(self._raw))
        if code == len(self._raw):
            self._raw.append(self._space.raw_combination(attributes))
        return code

    def settle(self) -> None:
        """Make room for codes that came since."""
        if more := self._raw[len(self.numbers) :]:
            vote = self._vote
            voteless = [vote is not None and raw[vote] == MISSING for raw in more]
            self.numbers = np.concatenate([self.numbers, np.full(len(more), NO_NUMBER, dtype=np.intp)])
            self.voteless = np.concatenate([self.voteless, voteless])
            self.borrowed = np.concatenate([self.borrowed, np.zeros(len(more), np.bool_)])

    def find(self, directory: CombinationDirectory) -> tuple[Flags, bool]:
        """Look numbers up; which have changed [codes], and whether all may mean other combinations now."""
        combinations, before = directory.combinations, self.numbers.copy()
        # Redis may have lost some.
        lost = combinations[: len(self._directory)] != self._directory
        if lost:
            self.numbers[:] = NO_NUMBER
        sought = self.numbers == NO_NUMBER
        # Nothing else gives those of another vote a number of their own, and there may be as many as labels.
        if self._vote is not None and any(
            told[self._vote] == MISSING for told in combinations[len(self._directory) :]
        ):
            sought |= self.borrowed
        if len(combinations) == len(self._directory) and not lost:
            sought[: self._looked_up] = False
        self._directory, self._looked_up = combinations, len(sought)
        for code in np.flatnonzero(sought).tolist():
            self.numbers[code], self.borrowed[code] = self._number_in(directory, self._raw[code])
        return before != self.numbers, lost

    def keep(self, kept: Flags) -> None:
        """Let go of some codes, and number the others without gaps.

        Args:
            kept: which stay [codes].
        """
        codes = {code: n for n, code in enumerate(np.flatnonzero(kept).tolist())}
        self._codes = {values: codes[code] for values, code in self._codes.items() if code in codes}
        self._raw = list(compress(self._raw, kept))
        self._looked_up = int(np.count_nonzero(kept[: self._looked_up]))
        self.numbers, self.voteless = self.numbers[kept], self.voteless[kept]
        self.borrowed = self.borrowed[kept]

    def _number_in(self, directory: CombinationDirectory, raw: Combination) -> tuple[int, bool]:
        """Number of a combination, if it has one; and whether that is the number of one of another vote."""
        folded, vote = directory.fold(raw), self._vote
        number = directory.number(folded)
        if vote is not None and raw[vote] == MISSING and (number is None or folded[vote] != MISSING):
            other = directory.number_of_any(raw, vote)
            if other is not None:
                return other, True
        return (NO_NUMBER if number is None else number), False
