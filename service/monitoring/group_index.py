"""The groups of a model's groupings in one round: their traffic, and which labels are in them (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from service.domain.arrays import Flags, Floats, Indices, Ints
from service.domain.cells import CHALLENGE, MISSING, OTHER, RESERVED, CellSpace
from service.domain.groupings import ByAttribute, ByStratum, Grouping
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts, rows_of
from service.domain.traffic_tables import CHALLENGE_COLUMNS
from service.domain.value_strata import ValueStrata
from service.domain.value_table import Block
from service.monitoring.label_encoding import LabelCells
from service.monitoring.traffic_windows import TrafficHistory
from service.statistics.balance_heuristic import sums
from service.statistics.epochs import recent_weights
from service.statistics.groups import Labels
from service.statistics.ratios import ratio


@dataclass(frozen=True)
class Groups:
    """The groups of one grouping that have ever had traffic.

    A group without traffic has no accuracy, and must not win "least accurate".
    """

    names: list[str]  # [G]
    counts: Ints  # predictions ever seen, by score bin [G, B]
    weights: Floats  # their decayed weight [G, B]
    score_sums: Floats  # weighted sums of their scores [G, B]
    missed: Floats  # share of a group's traffic that may be in `OTHER` instead, at most [G]
    cells: Indices  # group of every label cell; any of a cell without one [cells]
    has_group: Flags  # whether a label cell has one [cells]
    # predictions of every epoch, newest first [E, G, B]; None where only all traffic is known
    epochs: Floats | None = None

    @property
    def numbers(self) -> Indices:
        """Group of every label cell; of cells without one, the number of groups [cells]."""
        return np.where(self.has_group, self.cells, len(self.names))

    def cells_of(self, name: str) -> Flags:
        """Label cells in the group of this name; none if it has no traffic [cells]."""
        return np.equal(self.numbers, self.names.index(name) if name in self.names else -1)

    def labels_of(self, labels: Labels) -> Labels:
        """The labels, of all of the model's, that are in a group."""
        grouped = self.has_group[labels.cells]
        return labels if grouped.all() else labels.part(grouped, labels.weights)

    @property
    def shares(self) -> Floats:
        """Share of all traffic of every group, by decayed weight [G]."""
        weights = self.weights.sum(axis=1)
        return np.asarray(weights / max(float(weights.sum()), np.finfo(float).tiny), np.float64)


class CrossedGroups(NamedTuple):
    """Intersections of the groups of several groupings, of those that labels are in."""

    names: Sequence[str]  # [G]
    numbers: Indices  # of every label cell; of cells without one, the number of groups [cells]


@dataclass(frozen=True)
class AttributeTraffic:
    """Values of one attribute."""

    values: int  # that have a group of their own
    limit: int  # most values that have one, in each partition
    other_share: float  # share of recent traffic, by decayed weight, in `__other__`


class GroupIndex:
    """The groups of all groupings of one model in one round; each grouping is looked up once."""

    def __init__(
        self, space: CellSpace, traffic: Traffic, cells: LabelCells, history: TrafficHistory | None = None
    ) -> None:
        self.space = space
        self.traffic = traffic
        self.cells = cells
        self.history = history
        self._known: dict[str, Groups] = {}

    def __getitem__(self, grouping: str) -> Groups:
        """The groups of a grouping.

        Raises:
            KeyError: the model has no such grouping.
        """
        if grouping not in self._known:
            by_class = self.space.class_groups(grouping)
            groups = (
                self._by_value(self.space.groupings[grouping])
                if by_class is None
                else self._by_class(*by_class)
            )
            self._known[grouping] = self._of_now(grouping, groups)
        return self._known[grouping]

    def crossed(self, groupings: Sequence[str]) -> CrossedGroups:
        """The intersections of the groups of one grouping or more; of one, all its groups.

        Raises:
            KeyError: the model has no such grouping.
        """
        names, numbers = self[groupings[0]].names, self[groupings[0]].numbers
        for grouping in groupings[1:]:
            other = self[grouping]
            is_in = (numbers < len(names)) & other.has_group
            pairs, of = np.unique(
                np.stack((numbers[is_in], other.numbers[is_in])), axis=1, return_inverse=True
            )
            # No name has this character, so that names of intersections differ.
            names = [f"{names[own]}\0{other.names[crossing]}" for own, crossing in pairs.T.tolist()]
            numbers = np.full(len(numbers), len(names))
            numbers[is_in] = of.ravel()
        return CrossedGroups(names, numbers)

    def folded(self, grouping: str) -> Flags:
        """Label cells that are in the group of `OTHER`, as their values have no rows or are too long [cells].

        Raises:
            KeyError: the model has no such grouping.
        """
        groups, by = self[grouping], self.space.groupings[grouping]
        if not isinstance(by, ByAttribute | ByStratum):
            return np.zeros(len(self.cells), np.bool_)
        others = [number for number, name in enumerate(groups.names) if by.value_of(name) == OTHER]
        return np.isin(groups.numbers, others)

    def _of_now(self, grouping: str, groups: Groups) -> Groups:
        """The same groups, with the weights of traffic now."""
        if self.history is None or not groups.names:
            return groups
        epochs = np.stack([self._counted(grouping, tuple(groups.names), part) for part in self.history.parts])
        recent = recent_weights(epochs)
        middles = (np.arange(recent.shape[1]) + 0.5) / recent.shape[1]
        scores = ratio(groups.score_sums, groups.weights, middles)
        return replace(groups, weights=recent, score_sums=recent * scores, epochs=epochs)

    def _counted(self, grouping: str, names: tuple[str, ...], counts: TrafficCounts) -> Floats:
        """Predictions of some groups, by score bin [names, B]."""
        bins, by_class = self.space.bin_count, self.space.class_groups(grouping)
        if by_class is not None:
            found, groups = tuple(by_class[0]), by_class[1]
            summed = _sum_groups(counts.whole.counts[0].astype(np.float64), groups, len(found))
        else:
            by = self.space.groupings[grouping]
            kinds = ("selected_bins",) if isinstance(by, ByStratum) else ("bins", "class_bins")
            tables = [table for kind in kinds if (table := counts.tables.get((by.attribute, kind)))]
            if not tables:
                return np.zeros((len(names), bins))
            found, values = tables[0].names, tables[0].counts.astype(np.float64)
            if isinstance(by, ByStratum):
                strata = ValueStrata.of_grouping(self.space, by.name)
                found, summed = tuple(strata.names(found)), strata.split(values)
            else:
                summed = values.reshape(len(found), -1, bins).sum(axis=1)
        rows = rows_of(names, found)
        return np.where(rows[:, None] >= 0, summed[rows], 0.0) if found else np.zeros((len(names), bins))

    def _by_class(self, names: list[str], groups: Indices) -> Groups:
        """Groups by class and score bin; `groups` is [classes, bins]."""
        whole = self.traffic.whole
        counts, weights, score_sums = (
            _sum_groups(column[0].astype(np.float64), groups, len(names))
            for column in (whole.counts, whole.weights, whole.score_sums)
        )
        block = Block(counts.astype(np.int64), weights, score_sums)
        of_cells = groups[self.cells.classes, self.cells.bins]
        return _present(names, block, np.zeros(len(names)), of_cells)

    def _by_value(self, by: Grouping) -> Groups:
        attribute = by.attribute
        table = self.traffic.tables[attribute]
        order = np.array(sorted(range(len(table)), key=table.names.__getitem__), np.intp)
        names = [table.names[row] for row in order.tolist()]
        index = {name: group for group, name in enumerate(names)}
        values, codes = self.cells.values(attribute)
        # Of a value that has no row, the traffic is in that of `OTHER`, if anything is.
        other = index.get(OTHER, -1)
        found = np.array([index.get(value, -1 if value in RESERVED else other) for value in values], np.intp)
        of_cells = found[codes] if len(codes) else np.zeros(0, np.intp)
        if not isinstance(by, ByStratum):
            return _present(names, self.binned(attribute).part(order), table.missed[order], of_cells)
        strata, block = ValueStrata.of_grouping(self.space, by.name), table.block("selected_bins").part(order)
        split = Block(strata.split(block.counts), strata.split(block.weights), strata.split(block.score_sums))
        of_strata = of_cells * len(strata) + strata.of[self.cells.classes, self.cells.bins]
        # What is missed of a value is missed of all of its strata alike.
        missed = ratio(table.missed[order], block.weights.sum(axis=1), 0.0).repeat(len(strata))
        missed = missed * split.weights.sum(axis=1)
        return _present(strata.names(names), split, missed, np.where(of_cells < 0, -1, of_strata))

    def challenged(self, grouping: str) -> Floats:
        """Decayed weight of every group by what a challenger says, in `CHALLENGE_COLUMNS` [G, 3].

        Raises:
            KeyError: the model has no such grouping, or no challenger.
        """
        names, by_class = self[grouping].names, self.space.class_groups(grouping)
        attribute = self.space.groupings[grouping].attribute
        said = self.traffic.tables[CHALLENGE]
        if by_class is not None:
            # Classes without traffic have no group: they are in the last row, which is left out.
            groups = rows_of(tuple(by_class[0]), tuple(names))[by_class[1]]
            weights = np.zeros((len(names) + 1, len(CHALLENGE_COLUMNS)))
            for name, row in zip(said.names, said.block("class_bins").weights, strict=True):
                np.add.at(weights[:, CHALLENGE_COLUMNS.index(name)], groups.ravel(), row)
            return weights[:-1]
        if attribute == CHALLENGE:
            totals = dict(zip(said.names, said.totals().tolist(), strict=True))
            return np.array(
                [[totals[name] * (name == column) for column in CHALLENGE_COLUMNS] for name in names]
            ).reshape(-1, len(CHALLENGE_COLUMNS))
        table = self.traffic.tables[attribute]
        rows = np.array([table.rows[name] for name in names], np.intp)
        return table.block("challenge").weights[rows]

    def binned(self, attribute: str) -> Block:
        """Traffic of every value of an attribute, by score bin [rows, bins]."""
        table = self.traffic.tables[attribute]
        if "bins" in table.specs:
            return table.block("bins")
        block, bins = table.block("class_bins"), self.space.bin_count
        counts, weights, score_sums = (
            column.reshape(len(table), len(self.space.classes), bins).sum(axis=1)
            for column in (block.counts, block.weights, block.score_sums)
        )
        return Block(counts, weights, score_sums)


def has_voteless_traffic(space: CellSpace, traffic: Traffic) -> bool:
    """Whether there is traffic without the votes that distinguish groups; none of models without votes."""
    if space.voters is None:
        return False
    table = traffic.tables[space.voters[0]]
    row = table.rows.get(MISSING)
    return row is not None and bool(table.block("class_bins").counts[row].any())


def attribute_traffic(space: CellSpace, traffic: Traffic) -> dict[str, AttributeTraffic]:
    """Values of every attribute that groupings use, by name; votes are none."""
    found = {}
    for attribute in space.attributes:
        if space.voters is not None and attribute == space.voters[0]:
            continue
        table = traffic.tables[attribute]
        totals = table.totals()
        weight = float(totals.sum())
        other = float(totals[table.rows[OTHER]]) if OTHER in table.rows else 0.0
        found[attribute] = AttributeTraffic(
            values=len(table.rows.keys() - RESERVED),
            limit=space.bounds.attribute_values,
            other_share=other / weight if weight > 0 else 0.0,
        )
    return found


def _sum_groups(values: Floats, groups: Indices, count: int) -> Floats:
    """Sums of values of classes and score bins [classes * B], by group and score bin [count, B].

    `groups` has the group of every class and score bin [classes, B].
    """
    bins = groups.shape[1]
    return sums((groups * bins + np.arange(bins)).ravel(), values, count * bins).reshape(count, bins)


def _present(names: list[str], block: Block, missed: Floats, of_cells: Indices) -> Groups:
    """Those that have traffic; `of_cells` is -1 of label cells without a group."""
    present = block.counts.sum(axis=1) > 0
    renumbered = np.maximum(np.cumsum(present) - 1, 0)
    found = of_cells >= 0
    found[found] = present[of_cells[found]]
    weights = block.weights[present]
    own = weights.sum(axis=1)
    missed = missed[present]
    total = own + missed
    return Groups(
        names=[name for name, is_there in zip(names, present, strict=True) if is_there],
        counts=block.counts[present],
        weights=weights,
        score_sums=block.score_sums[present],
        missed=ratio(missed, total, 0.0),
        cells=np.where(found, renumbered[np.maximum(of_cells, 0)], 0) if len(names) else of_cells * 0,
        has_group=found,
    )
