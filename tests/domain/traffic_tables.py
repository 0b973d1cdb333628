"""Traffic that tests choose, from cells of the product of all that tells predictions apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from service.domain.cells import AGREE, CHALLENGE, DISAGREE, CellSpace
from service.domain.traffic import Traffic
from service.domain.traffic_tables import ALL_TRAFFIC, CHALLENGE_COLUMNS, tables
from service.domain.value_table import Block
from service.store.facts import TrafficFacts


class JointCell(NamedTuple):
    """Traffic of one combination of values, class and score bin.

    Attributes:
        values: of the attributes that groupings use, in the order of `CellSpace.attributes`.
        predicted: index of the predicted class.
        score_bin: its number.
        count: predictions ever seen.
        weight: their decayed weight.
        score_sum: weighted sum of their scores.
    """

    values: tuple[str, ...]
    predicted: int
    score_bin: int
    count: int
    weight: float
    score_sum: float


def traffic_of(space: CellSpace, cells: Iterable[JointCell], *, landmark: float = 0.0) -> Traffic:
    """Traffic whose tables have the sums of some cells.

    Args:
        space: what tells the model's predictions apart.
        cells: several may be the same.
        landmark: time in seconds at which a prediction weighs 1.
    """
    cells = list(cells)
    traffic = Traffic(tables(space))
    traffic.landmark = landmark
    for attribute, table in traffic.tables.items():
        if attribute == ALL_TRAFFIC:
            rows = np.zeros(len(cells), np.intp)
        else:
            at = space.attributes.index(attribute)
            names = list(dict.fromkeys(cell.values[at] for cell in cells))
            table.restore(names, np.zeros(len(names)))
            rows = np.array([table.rows[cell.values[at]] for cell in cells], np.intp)
        for columns, block in table.blocks.items():
            for row, cell in zip(rows.tolist(), cells, strict=True):
                _add(block, row, _column(space, columns, cell), cell)
    traffic.mark_flushed()
    return traffic


def _add(block: Block, row: int, column: int, cell: JointCell) -> None:
    block.counts[row, column] += cell.count
    if block.weights.shape[1]:
        block.weights[row, column] += cell.weight
        block.score_sums[row, column] += cell.score_sum


def _column(space: CellSpace, columns: str, cell: JointCell) -> int:
    if columns == "class_bins":
        return cell.predicted * space.bin_count + cell.score_bin
    if columns == "bins":
        return cell.score_bin
    if columns == "classes":
        return cell.predicted
    if columns == "selected_bins":
        assert space.selections is not None
        selected = space.classes[cell.predicted] == space.selections.positive
        return selected * space.bin_count + cell.score_bin
    vote = cell.values[space.attributes.index(CHALLENGE)]
    return CHALLENGE_COLUMNS.index(vote) if vote in (AGREE, DISAGREE) else len(CHALLENGE_COLUMNS) - 1


def facts_of(
    space: CellSpace,
    cells: Iterable[JointCell],
    *,
    landmark: float = 0.0,
    probability_sums: Mapping[int, np.ndarray] | None = None,
) -> TrafficFacts:
    """Facts of one partition with this traffic and an empty pool; arguments as of `traffic_of`.

    Args:
        space: what tells the model's predictions apart.
        cells: of the traffic.
        landmark: of the traffic.
        probability_sums: of class probabilities, by predicted class.
    """
    traffic = traffic_of(space, cells, landmark=landmark)
    return TrafficFacts([0], traffic, {0: 0}, {0: np.zeros(0)}, {0: 0}, dict(probability_sums or {}))


def every_cell(
    space: CellSpace,
    combinations: Sequence[tuple[str, ...]],
    *,
    count: int = 1,
    weight: float = 1.0,
    score: float = 0.7,
) -> list[JointCell]:
    """Cells of some combinations, in all classes and score bins, all with the same traffic.

    Args:
        space: what tells the model's predictions apart.
        combinations: values of attributes.
        count: predictions of each cell.
        weight: of each.
        score: mean score of each.
    """
    return [
        JointCell(values, predicted, number, count, weight, score * weight)
        for values in combinations
        for predicted in range(len(space.classes))
        for number in range(space.bin_count)
    ]
