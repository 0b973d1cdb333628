"""What drift compares: traffic of every group by score bin, by predicted class and by attribute value (pure).

Each comes from one table of traffic. So the values of one attribute are not compared within the groups of
another: a table of both would grow with their product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Indices, Ints
from service.domain.cells import CHALLENGE, OTHER, VOTES, CellSpace
from service.domain.groupings import ByClass, ByScore, Grouping
from service.domain.traffic_counts import TableCounts, TrafficCounts, rows_of
from service.domain.traffic_tables import Columns
from service.statistics.drift import mix_counts

SCORES = "score"  # the mix of score bins
CLASSES = "predicted_class"  # the mix of predicted classes

MOST_ENTRIES = 2_000_000
"""A mix of so many groups times kinds at most is compared: 16 MB, and some milliseconds."""


@dataclass(frozen=True)
class ComparedMix:
    """Traffic by group and kind."""

    name: str  # `score`, `predicted_class`, `attribute:<name>` or `votes`
    reference: Ints  # predictions [G, kinds]
    recent: Ints  # the same of recent traffic [G, kinds]


@dataclass(frozen=True)
class GroupedTraffic:
    """Traffic of the groups of one grouping."""

    space: CellSpace
    grouping: Grouping
    names: Sequence[str]  # of its groups that have traffic [G]

    def scores(self, counts: TrafficCounts) -> Ints | None:
        """Predictions by score bin [G, B]; None where no table has them."""
        return self._by_kind(counts, "bins", np.arange(self.space.bin_count))

    def classes(self, counts: TrafficCounts) -> Ints | None:
        """Predictions by predicted class [G, K]; None where no table has them."""
        return self._by_kind(counts, "classes", np.arange(len(self.space.classes))[:, None])

    def is_partial(self, counts: TrafficCounts) -> Flags:
        """Whether groups may miss much of their traffic [G]."""
        for (attribute, _), table in counts.tables.items():
            if attribute == self.grouping.attribute != "":
                places = rows_of(tuple(self.names), table.names)
                return np.where(places >= 0, np.append(table.is_partial, False)[places], False)
        return np.zeros(len(self.names), np.bool_)

    def mixes(self, reference: TrafficCounts, recent: TrafficCounts) -> Iterator[ComparedMix]:
        """All mixes that tables have of these groups, but those of which all of a group is one kind.

        A group that may miss much of its traffic has none to compare: its value may have lost its row within
        the time that is compared. Agreement with a challenger is no mix: a new one, or votes that come or go,
        is no change of the model's traffic.
        """
        size = len(self.names)
        partial = self.is_partial(reference) | self.is_partial(recent)
        if not isinstance(self.grouping, ByScore) and size * self.space.bin_count <= MOST_ENTRIES:
            yield from _compared(SCORES, self.scores(reference), self.scores(recent), without=partial)
        if not isinstance(self.grouping, ByClass) and size * len(self.space.classes) <= MOST_ENTRIES:
            yield from _compared(CLASSES, self.classes(reference), self.classes(recent), without=partial)
        places = self._class_groups()
        if places is None:
            return
        for attribute in self.space.attributes:
            if attribute != CHALLENGE:
                yield from self._attribute_mix(attribute, places, reference, recent)

    def _class_groups(self) -> Indices | None:
        """Group of every class and score bin [K, B]; None of groups that are values of an attribute."""
        found = self.space.class_groups(self.grouping.name)
        if found is None:
            return None
        # One without traffic has no group, and no counts that any could get.
        places = np.maximum(rows_of(tuple(found[0]), tuple(self.names)), 0)
        return np.asarray(places[found[1]], np.intp)

    def _by_kind(self, counts: TrafficCounts, columns: Columns, kinds: Indices) -> Ints | None:
        """Predictions by kind [G, kinds].

        `columns` are one of each kind; `kinds` broadcasts to that of every class and score bin [K, B]. Values
        of an attribute are counted by these columns, or by class and score bin.
        """
        shape = (len(self.names), kinds.size)
        of_class_bins = np.broadcast_to(kinds, (len(self.space.classes), self.space.bin_count)).ravel()
        if (places := self._class_groups()) is not None:
            return mix_counts(places.ravel(), of_class_bins, counts.whole.counts[0], shape)
        table, kinds = counts.tables.get((self.grouping.attribute, columns)), kinds.ravel()
        if table is None:
            table, kinds = counts.tables.get((self.grouping.attribute, "class_bins")), of_class_bins
        if table is None:
            return None
        groups = rows_of(table.names, tuple(self.names))
        if OTHER in self.names:
            # The value has lost its row since then, and its traffic is in that of `OTHER` now.
            groups[groups < 0] = list(self.names).index(OTHER)
        rows = np.flatnonzero(groups >= 0)
        return mix_counts(
            np.repeat(groups[rows], table.width),
            np.tile(kinds, len(rows)),
            table.counts[rows].ravel(),
            shape,
        )

    def _attribute_mix(
        self, attribute: str, places: Indices, reference: TrafficCounts, recent: TrafficCounts
    ) -> Iterator[ComparedMix]:
        """Values of an attribute by groups [K, B] of classes and score bins, if a table has both.

        Values with a row then and now that misses little are kinds of their own, the others are one together:
        a value that got its row only since then had its traffic in `OTHER` before. For values that are really
        new nothing is lost: kinds without any traffic on one side are as far away together as one by one.
        """
        for columns, groups in self._columns_of_groups(places):
            key = (attribute, columns)
            if key not in reference.tables or key not in recent.tables:
                continue
            before, after = reference.tables[key], recent.tables[key]
            stable = tuple(sorted((_whole_rows(before) & _whole_rows(after)) - {OTHER}))
            size = len(stable) + 1
            if len(self.names) * size <= MOST_ENTRIES:
                name = "votes" if attribute == VOTES else f"attribute:{attribute}"
                yield ComparedMix(
                    name,
                    *(_by_value(table, stable, groups, (len(self.names), size)) for table in (before, after)),
                )
            return

    def _columns_of_groups(self, places: Indices) -> Iterator[tuple[Columns, Indices]]:
        """Columns that tell these groups apart, and the group of every one."""
        yield "class_bins", places.ravel()
        if (places == places[:1]).all():
            yield "bins", places[0]
        if (places == places[:, :1]).all():
            yield "classes", places[:, 0]


def _compared(
    name: str, reference: Ints | None, recent: Ints | None, *, without: Flags
) -> Iterator[ComparedMix]:
    """The mix, if tables have both; some groups are without traffic in it."""
    if reference is not None and recent is not None:
        whole = ~without[:, None]
        yield ComparedMix(name, reference * whole, recent * whole)


def _whole_rows(table: TableCounts) -> set[str]:
    """Values whose rows have nearly all of their traffic."""
    return {
        name
        for name, is_partial in zip(table.names, table.is_partial.tolist(), strict=True)
        if not is_partial
    }


def _by_value(table: TableCounts, stable: tuple[str, ...], groups: Indices, shape: tuple[int, int]) -> Ints:
    """Predictions by group and value [G, values]; the last kind is all values that are not among `stable`."""
    kinds = rows_of(table.names, stable)
    kinds[kinds < 0] = len(stable)
    rows = len(table.names)
    return mix_counts(np.tile(groups, rows), np.repeat(kinds, table.width), table.counts.ravel(), shape)
