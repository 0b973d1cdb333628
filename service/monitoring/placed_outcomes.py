"""The outcomes of one model as rows: each counts in one sum, or in none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from service.config.unrequested import ChosenBy
from service.domain.arrays import Codes, Indices
from service.domain.cells import CellSpace
from service.domain.groupings import ByClass
from service.monitoring.label_encoding import LabelCells, LabelSources
from service.monitoring.outcome_aggregates import NO_CLASS, LabelSums, sum_keys
from service.monitoring.outcome_rows import (
    ESTIMATOR_COLUMN,
    NONE,
    RIVAL_COLUMN,
    DrawnGroups,
    OutcomeRows,
    key_position,
)
from service.monitoring.paired_outcomes import UNREQUESTED_COLUMNS, OutcomePairs
from service.monitoring.shared_draws import SharedDraws

_SUMMED_BY = (
    "predicted_at",
    "combination",
    "predicted",
    "score",
    "source",
    "true_class",
    "correct",
    "challenger",
    "alive",
)
"""Columns that decide on the sum."""


class PlacedOutcomes:
    """Rows of outcomes, and the sums in which they count.

    Where votes distinguish groups, a prediction without them that is from before the first known one with
    them may have been of any vote. So may one where there is no traffic at all without votes. Either has a
    source of its own, which says that its labels stand for predictions of all votes.

    A prediction that was requested and waited for an unrequested label, too, is one outcome.
    """

    def __init__(
        self, space: CellSpace, *, may_err: bool = False, unrequested: ChosenBy | None = None
    ) -> None:
        self._space = space
        # Whether rows have a `rival`: where labels are the truth, they say whether others are right.
        self._has_rivals = may_err and space.voters is not None
        self._has_estimators = space.selections is not None
        # How items are chosen that get unrequested labels; without it there are none.
        self.unrequested = unrequested
        self._pairs = OutcomePairs()
        by_class = any(isinstance(g, ByClass) for g in space.groupings.values())
        self._needs_classes = by_class or space.ensemble is not None or space.selections is not None
        self.cells = LabelCells(space)  # numbered by `place`
        more: dict[str, npt.DTypeLike] = {}
        if unrequested is not None:
            more |= UNREQUESTED_COLUMNS
        if self._has_rivals:
            more |= RIVAL_COLUMN
        if self._has_estimators:
            more |= ESTIMATOR_COLUMN
        self._rows = OutcomeRows(more)
        self._sources = LabelSources(space)
        self._sums = LabelSums()
        self._stale = 0  # changes since codes were last numbered without gaps
        self._shared = SharedDraws()
        self._drawn = DrawnGroups()
        self._voted_from = np.inf
        self._votes_missing = False

    def place(self, *, votes_missing: bool = True) -> None:
        """Let all outcomes count in their sums, those too that came since the last time.

        Only while there is traffic without the votes that distinguish groups (`votes_missing`) is a label
        without votes from after the first vote not of any vote.
        """
        rows, voted_from = self._rows, self._first_voted()
        if votes_missing != self._votes_missing or voted_from != self._voted_from:
            earlier, later = sorted((voted_from, self._voted_from))
            moved = self.cells.voteless[rows["combination"]]
            if votes_missing == self._votes_missing:
                moved = moved & (rows["predicted_at"] >= earlier) & (rows["predicted_at"] < later)
            self._voted_from, self._votes_missing = voted_from, votes_missing
            self._withdraw(np.flatnonzero(moved))
        pending = np.flatnonzero(rows["pending"])
        if not pending.size:
            return
        if self.unrequested is not None:
            self._pair(pending)
            pending = np.flatnonzero(rows["pending"])
        self._sum_up(pending)

    def _pair(self, pending: Indices) -> None:
        """Let predictions with two sources of labels be one outcome."""
        pairs = list(self._pairs.found(self._rows, pending))
        self._withdraw(np.array(pairs, np.intp).ravel())
        for pair in pairs:
            self._pairs.merge(self._rows, *pair, self._sources)

    def _split(self, keys: Iterable[int]) -> None:
        """Let these outcomes be what they were without their second source, until the next `place`."""
        pairs = self._pairs.partners(keys)
        places = (self._rows.row(key_position(each)) for pair in pairs for each in pair)
        self._withdraw(np.array([row for row in places if row is not None], np.intp))
        for key, _ in pairs:
            self._pairs.split(self._rows, key)

    def _first_voted(self) -> float:
        """When the first prediction with votes was made, seconds since the epoch; infinite without one."""
        if self._space.voters is None:
            return np.inf
        voted = ~self.cells.voteless[self._rows["combination"]]
        return float(self._rows["predicted_at"][voted].min(initial=np.inf))

    def _asked_by(self, rows: Mapping[str, npt.NDArray[Any]]) -> Codes:
        """Codes of who asked; labels of any vote have codes of their own [n]."""
        sources: Codes = rows["source"]
        if self._space.voters is None:
            return sources
        any_vote = self.cells.voteless[rows["combination"]]
        if self._votes_missing:
            any_vote = any_vote & (rows["predicted_at"] < self._voted_from)
        if not any_vote.any():
            return sources
        known, other = self._sources.all, np.arange(len(self._sources), dtype=np.int32)
        for code in np.unique(sources[any_vote]).tolist():
            other[code] = self._sources.code(known[code]._replace(any_vote=True))
        return np.where(any_vote, other[sources], sources)

    def _sum_up(self, chosen: Indices) -> None:
        """Find in which sums some rows count."""
        rows = {name: self._rows[name][chosen] for name in _SUMMED_BY}
        counts = rows["alive"] & (rows["predicted"] != NONE)
        if self.unrequested is not None:
            counts &= ~self._rows["paired"][chosen]
        counted = {name: column[counts] for name, column in rows.items()}
        cells = self.cells.cells(
            counted["combination"], counted["predicted"], self._space.bins(counted["score"])
        )
        keys = sum_keys(
            cells=cells,
            sources=self._asked_by(counted),
            true_classes=counted["true_class"]
            if self._needs_classes
            else np.minimum(counted["true_class"], NO_CLASS),
            correct=counted["correct"],
            challenger=counted["challenger"],
        )
        sums = np.full(len(chosen), NONE)
        sums[counts] = self._sums.numbers(keys)
        self._rows["sum"][chosen], self._rows["pending"][chosen] = sums, False
        self._sums.tallies.add(sums[counts], self._rows.marks(chosen[counts]))

    def _withdraw(self, chosen: Indices) -> None:
        """Let some rows count in no sum until the next `place`; before their marks change."""
        column = self._rows["sum"]
        counted = chosen[column[chosen] != NONE]
        self._sums.tallies.remove(column[counted], self._rows.marks(counted))
        column[counted] = NONE
        self._rows["pending"][chosen] = True

    def _tidy(self) -> None:
        """Number what is left without gaps, so that it is bounded by the number of outcomes.

        Sources keep their codes, which are in the keys of sums: they come from configurations, not messages.
        """
        rows = self._rows
        combinations = rows.renumber("combination", self.cells.combination_count)
        cells = self._sums.keep(rows.renumber("sum", len(self._sums)), len(self.cells))
        self.cells.keep(combinations, cells)
        self._drawn.keep(rows.renumber("drawn_for", len(self._drawn)))
        self._shared.keep(rows.outcome_keys())
        self._stale = 0
