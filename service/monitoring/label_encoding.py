"""Where labelled predictions are, and who asked for their labels, numbered in the order of labels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, islice
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Codes, Flags, Indices, Ints
from service.domain.cells import FORMER_GROUPING, MISSING, OTHER, CellSpace, Combination, definitions
from service.domain.groupings import ALL, ByAttribute, ByStratum
from service.store.records import Fact


class LabelCells:
    """Numbers combinations of attribute values, and cells, in the order in which labels bring them.

    Predictions that are alike in attribute values, predicted class and score bin are in one cell, whatever
    traffic there is. So the group of a label in any grouping is a look-up, and the number of cells is bounded
    by that of labels.
    """

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._vote = None if space.voters is None else space.attributes.index(space.voters[0])
        self._combinations: dict[Combination, int] = {}
        self._voteless: Flags = np.zeros(0, np.bool_)
        self._cells: dict[int, int] = {}
        self._keys: Ints = np.zeros(0, np.int64)
        self._values: dict[str, tuple[list[str], Indices]] = {}

    def __len__(self) -> int:
        """How many cells there are."""
        return len(self._cells)

    @property
    def combination_count(self) -> int:
        """How many combinations of attribute values there are."""
        return len(self._combinations)

    def combination(self, attributes: Mapping[str, str]) -> int:
        """Number of the values that groups depend on; of new ones, the next number."""
        raw = self._space.raw_combination(attributes)
        return self._combinations.setdefault(raw, len(self._combinations))

    @property
    def voteless(self) -> Flags:
        """Of every combination, whether votes are missing that distinguish groups [combinations]."""
        if len(self._voteless) < len(self._combinations):
            more = islice(self._combinations, len(self._voteless), None)
            missing = [self._vote is not None and raw[self._vote] == MISSING for raw in more]
            self._voteless = np.append(self._voteless, missing)
        return self._voteless

    def cells(self, combinations: Codes, classes: Codes, bins: Indices) -> Indices:
        """Cells of predictions, by combination, class and bin [n]; new ones get the next numbers."""
        keys = combinations.astype(np.int64) * len(self._space.classes) + classes
        found, inverse = np.unique(keys * self._space.bin_count + bins, return_inverse=True)
        numbers = [self._cells.setdefault(key, len(self._cells)) for key in found.tolist()]
        cells: Indices = np.array(numbers, np.intp)[inverse.ravel()]
        return cells

    @property
    def bins(self) -> Indices:
        """Score bin of every cell [cells]."""
        return (self._known_keys() % self._space.bin_count).astype(np.intp)

    @property
    def classes(self) -> Indices:
        """Index of the predicted class of every cell [cells]."""
        return (self._known_keys() // self._space.bin_count % len(self._space.classes)).astype(np.intp)

    def values(self, attribute: str) -> tuple[list[str], Indices]:
        """Values of an attribute that groupings use, and which of them every cell has [cells].

        Raises:
            ValueError: no grouping uses such an attribute.
        """
        position = self._space.attributes.index(attribute)
        names, of_combinations = self._values.get(attribute, ([], np.zeros(0, np.intp)))
        if len(of_combinations) < len(self._combinations):
            index: dict[str, int] = {}
            numbers = [index.setdefault(raw[position], len(index)) for raw in self._combinations]
            names, of_combinations = list(index), np.array(numbers, np.intp)
            self._values[attribute] = names, of_combinations
        per_combination = len(self._space.classes) * self._space.bin_count
        return names, of_combinations[self._known_keys() // per_combination]

    def keep(self, combinations: Flags, cells: Flags) -> None:
        """Let go of cells and combinations but these, among which are those of all these cells."""
        keys, per_combination = self._known_keys()[cells], len(self._space.classes) * self._space.bin_count
        renumbered = np.cumsum(combinations) - 1
        keys = renumbered[keys // per_combination] * per_combination + keys % per_combination
        self._cells = {key: number for number, key in enumerate(keys.tolist())}
        self._voteless = self.voteless[combinations]
        self._combinations = {
            raw: number for number, raw in enumerate(compress(self._combinations, combinations))
        }
        self._keys = np.zeros(0, np.int64)
        self._values.clear()

    def _known_keys(self) -> Ints:
        if len(self._keys) < len(self._cells):
            self._keys = np.fromiter(self._cells, np.int64, len(self._cells))
        return self._keys


class Source(NamedTuple):
    """What labels have in common that were drawn for the same."""

    # pairs of assessment and grouping for which they were drawn; `FORMER_GROUPING` stands for one that is
    # not configured any more
    draws: frozenset[tuple[str, str]]
    any_vote: bool = False  # whether the labels stand for predictions of any vote
    # groupings for which they were drawn from the group of their own value, and not from `OTHER`
    by_value: frozenset[str] = frozenset()
    # whether the items are of the sample that waited for unrequested labels, which is even over all traffic;
    # then `draws` are only the requests of the same items
    of_traffic: bool = False
    absent: bool = False  # whether such a label did not come
    # why the request has no label of its own, if the unrequested one counts in its place: what is in place
    # of a class (`outcome_aggregates`), or `NO_CLASS` if its label was retracted
    instead_of: int | None = None

    @property
    def groupings(self) -> frozenset[str]:
        """For which they were requested."""
        return frozenset(grouping for _, grouping in self.draws)

    @property
    def samples(self) -> frozenset[str]:
        """Groupings within whose groups they are drawn evenly, and whose densities their weights depend on.

        An item that waited for an unrequested label, and was requested too, is in both samples. It counts in
        the one of all traffic; what was requested besides is drawn evenly from the rest.
        """
        return frozenset({ALL}) if self.of_traffic else self.groupings

    def with_further(self, further: Source) -> Source:
        """Drawn once more; the sampling density is known if one of the groupings is configured."""
        draws = self.draws | further.draws
        configured = frozenset(draw for draw in draws if draw[1] != FORMER_GROUPING)
        evenly = (self.groupings - self.by_value) | (further.groupings - further.by_value)
        return self._replace(draws=configured or draws, by_value=(self.by_value | further.by_value) - evenly)

    def with_unrequested(self, *, absent: bool, instead_of: int | None = None) -> Source:
        """The same of an item that waited for an unrequested label, too."""
        return self._replace(any_vote=False, of_traffic=True, absent=absent, instead_of=instead_of)


def unrequested_source(*, absent: bool) -> Source:
    """Of items that waited for an unrequested label."""
    return Source(frozenset()).with_unrequested(absent=absent)


class LabelSources:
    """Numbers sources in the order in which labels bring them."""

    def __init__(self, space: CellSpace) -> None:
        self._space = space
        self._definitions = definitions(space)
        self._names = {definition: name for name, definition in reversed(self._definitions.items())}
        self._codes: dict[Source, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def all(self) -> list[Source]:
        """All sources, in the order of their codes."""
        return list(self._codes)

    def source(self, assessment: str, fact: Fact) -> Source:
        """Who asked for a label, by one draw."""
        name = self.grouping_of(fact)
        known = self._space.groupings.get(name)
        by_value = False
        if isinstance(known, ByAttribute | ByStratum):
            by_value = known.value_of(fact.group) not in (OTHER, MISSING)
        return Source(frozenset({(assessment, name)}), by_value=frozenset({name} if by_value else ()))

    def code(self, source: Source) -> int:
        """Code of a source; of a new one, the next number."""
        return self._codes.setdefault(source, len(self._codes))

    def grouping_of(self, fact: Fact) -> str:
        """The grouping that a label was drawn for; `FORMER_GROUPING` if it is a different one by now."""
        name = fact.grouping
        # A label from before definitions were stored has only the name.
        if fact.definition and fact.definition != self._definitions.get(name):
            name = self._names.get(fact.definition, FORMER_GROUPING)
        return name if fact.voters == self._space.voters_of(name) else FORMER_GROUPING
