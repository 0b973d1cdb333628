"""Who asked for labels: the assessments and groupings that a label was drawn for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.domain.arrays import Flags
from service.domain.cells import FORMER_GROUPING, MISSING, OTHER, CellSpace
from service.domain.grouping_fingerprints import definitions
from service.store.records import Fact


class Source(NamedTuple):
    """What labels have in common that were drawn for the same.

    Attributes:
        draws: pairs of assessment and grouping for which they were drawn; `FORMER_GROUPING` stands for one
            that is not configured any more.
        any_vote: whether the labels stand for predictions of any vote.
        by_value: groupings for which they were drawn from the group of their own value, and not from `OTHER`.
    """

    draws: frozenset[tuple[str, str]]
    any_vote: bool = False
    by_value: frozenset[str] = frozenset()

    @property
    def groupings(self) -> frozenset[str]:
        """For which they were drawn."""
        return frozenset(grouping for _, grouping in self.draws)

    def with_further(self, further: Source) -> Source:
        """Drawn once more; the sampling density is known if one of the groupings is configured."""
        draws = self.draws | further.draws
        configured = frozenset(draw for draw in draws if draw[1] != FORMER_GROUPING)
        evenly = (self.groupings - self.by_value) | (further.groupings - further.by_value)
        return self._replace(draws=configured or draws, by_value=(self.by_value | further.by_value) - evenly)


class LabelSources:
    """Numbers sources in the order in which labels bring them.

    Args:
        space: what tells the model's predictions apart.
    """

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
        by_value = known is not None and known.kind == "attribute" and fact.group not in (OTHER, MISSING)
        return Source(frozenset({(assessment, name)}), by_value=frozenset({name} if by_value else ()))

    def code(self, source: Source) -> int:
        """Code of a source; of a new one, the next number."""
        return self._codes.setdefault(source, len(self._codes))

    def drawn_for(self, grouping: str) -> Flags:
        """Of every code, whether the labels were drawn for a grouping [sources].

        Args:
            grouping: its name.
        """
        return np.array([grouping in source.groupings for source in self._codes], np.bool_)

    def by_value(self, grouping: str) -> Flags:
        """Of every code, whether the labels were drawn from the groups of their own values [sources].

        Args:
            grouping: its name.
        """
        return np.array([grouping in source.by_value for source in self._codes], np.bool_)

    @property
    def of_any_vote(self) -> Flags:
        """Of every code, whether its labels stand for predictions of any vote [sources]."""
        return np.array([source.any_vote for source in self._codes], np.bool_)

    def grouping_of(self, fact: Fact) -> str:
        """The grouping that a label was drawn for; `FORMER_GROUPING` if it is a different one by now."""
        name = fact.grouping
        # A label from before definitions were stored has only the name.
        if fact.definition and fact.definition != self._definitions.get(name):
            name = self._names.get(fact.definition, FORMER_GROUPING)
        return name if fact.voters == self._space.aimed_by(name) else FORMER_GROUPING
