"""Importance weights of labels under the balance heuristic, from facts (pure).

Labels of predictions that carried no votes, because nobody voted yet, keep their information about the
model. They stand for predictions of any vote, of the same attributes, class and score, and say nothing of
groups by votes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.domain.cells import CHALLENGE, MISSING
from service.domain.groupings import ALL, ByAttribute, ByClass
from service.domain.traffic_tables import CHALLENGE_COLUMNS
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.outcome_table import OutcomeLedger
from service.statistics.balance_heuristic import (
    AssessmentLabels,
    even_sample_weight,
    group_densities,
    inverse,
    label_densities,
    sums,
)
from service.statistics.epochs import (
    Draws,
    Margin,
    epoch_label_densities,
    epoch_shares,
    retention_by_region,
    share_ratios,
)
from service.statistics.ratios import ratio

RetainedShares = Callable[[Indices, bool], Floats | None]
"""Share of some labels that remains after change points, by label cell; None if all remain. The flag leaves
out changes of groups by votes."""

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class LabelWeights:
    """Weights of labels, any scale."""

    weights: Floats  # of every label [n]
    voted: Flags | None  # which say something of groups by votes [n]; None if all do
    weights_by_votes: Floats  # of every label, there [n]


@dataclass(frozen=True)
class LabelEpochs:
    """Labels by epochs of traffic."""

    whole: Floats  # what age leaves of them, by sum and epoch [n, E]
    left: Floats  # what changes leave of that [n, E]
    # of every label cell, a number that cells share which changed alike; None if nothing did [cells]
    regions: Indices | None


@dataclass(frozen=True)
class DrawnLabels:
    """Labels, and the groups that they were drawn for."""

    index: GroupIndex
    ledger: OutcomeLedger
    cells: Indices  # label cell of every label [n]
    sources: Indices  # codes of who asked for it [n]
    # whether each counts as its requests drew it, although it may be of a sample of all traffic, too
    as_requested: bool = False

    @classmethod
    def of(cls, index: GroupIndex, ledger: OutcomeLedger, cells: Indices, sources: Indices) -> DrawnLabels:
        """Labels for tasks that take them for a random sample: without those that are self-selected."""
        return cls(index, ledger, cells, sources, as_requested=ledger.unrequested == "unknown")

    def part(self, which: Flags) -> DrawnLabels:
        """Some of them."""
        return replace(self, cells=self.cells[which], sources=self.sources[which])

    def usable(self, unanswered: Collection[int] = ()) -> Flags:
        """Labels that can be weighted [n]: those drawn for a group that has traffic.

        Requested ones alone if they count as requested; then `unanswered` is as in `counts_as_requested`.

        A label drawn for groups without traffic has no information about the traffic. Nor has one of unknown
        sampling density, such as one drawn for a value that has lost its row since: it is a biased sample of
        `OTHER`, and the share of its value there is unknown.
        """
        found = np.zeros(len(self.cells), np.bool_)
        for grouping in self.groupings():
            for any_vote in (False, True):
                drawn = self.within(grouping, any_vote)
                if drawn.any():
                    found |= drawn & self.groups(grouping, any_vote).has_group[self.cells]
        if self.as_requested:
            found &= self.ledger.counts_as_requested(unanswered)[self.sources]
        return found & self.ledger.has_known_density[self.sources]

    def groupings(self) -> list[str]:
        """Groupings that labels were drawn for."""
        drawn = [source.groupings if self.as_requested else source.samples for source in self.ledger.sources]
        return sorted({name for names in drawn for name in names})

    def _drawn_for(self, grouping: str) -> Flags:
        ledger = self.ledger
        return ledger.is_requested_for(grouping) if self.as_requested else ledger.is_drawn_for(grouping)

    def within(self, grouping: str, any_vote: bool) -> Flags:
        """Which labels were drawn for a grouping, evenly within the groups that they are in now [n].

        Those that stand for predictions of any vote, or the others.
        """
        ledger = self.ledger
        of_sources = self._drawn_for(grouping) & (ledger.of_any_vote == any_vote)
        drawn: Flags = of_sources[self.sources]
        if grouping in self.index.space.groupings and (by_value := ledger.is_drawn_by_value(grouping)).any():
            drawn &= ~(by_value[self.sources] & self.index.folded(grouping)[self.cells])
        return drawn

    def groups(self, grouping: str, any_vote: bool) -> Groups:
        """Groups within which labels were drawn evenly.

        Before anybody voted all traffic was without votes, so that labels for that group were drawn from all.
        """
        configured = self.index.space.groupings.get(grouping)
        return self.index[ALL if configured is None or (any_vote and configured.is_by_votes) else grouping]


def label_weights(
    drawn: DrawnLabels,
    freshness: Floats,
    *,
    retained: RetainedShares | None = None,
    epochs: LabelEpochs | None = None,
) -> LabelWeights:
    """Weights of labels.

    `freshness` is what forgetting leaves of each [n]; `retained` what change points leave of some.
    `epochs` are the same labels by epochs of traffic, where these are known.
    """
    index, cells, voters = drawn.index, drawn.cells, drawn.index.space.voters
    even, uneven, uneven_beside_votes, by_votes = _labels_by_grouping(drawn, retained)

    def densities(assessments: list[AssessmentLabels]) -> Floats:
        return label_densities(
            cells=cells, freshness=freshness, assessments=assessments, cell_count=len(index.cells)
        )

    if voters is None or not even:
        weights = inverse(densities(uneven)[cells])
        if epochs is not None and len(cells):
            mass = sums(cells, weights * freshness, len(index.cells))
            weights = _by_epochs(drawn, epochs, mass)
        return LabelWeights(weights, None, weights)
    of_even, of_uneven, beside = densities(even), densities(uneven), densities(uneven_beside_votes)
    votes = index[voters[0]]
    aimed = np.zeros(len(votes.names) + 1)
    if by_votes is not None:
        aimed = group_densities(by_votes, cells=cells, freshness=freshness)
    # Of all votes the same for cells that are alike in everything else, as `even_sample_weight` needs.
    shares = ((share, beside + aimed[vote]) for vote, (_, share) in enumerate(vote_shares(index)))
    unlabelled = float(votes.shares[aimed[:-1] == 0].sum())
    even_weight = even_sample_weight(even=of_even, parts=shares, unlabelled=unlabelled)[cells]
    stand_for_all = drawn.ledger.of_any_vote[drawn.sources]
    without = votes.cells_of(MISSING)
    share_without = next((share for name, share in vote_shares(index) if name == MISSING), np.zeros(1))
    # Labels from before stand for all traffic of their stratum, but are all in its part without votes.
    in_part = np.where(without, of_even / np.maximum(share_without, 1e-30), 0.0)
    return LabelWeights(
        weights=np.where(
            stand_for_all,
            even_weight * inverse(of_even[cells]),
            (1 - even_weight) * inverse(of_uneven[cells]),
        ),
        voted=~stand_for_all | without[cells],
        weights_by_votes=inverse((of_uneven + in_part)[cells]),
    )


def _labels_by_grouping(
    drawn: DrawnLabels, retained: RetainedShares | None
) -> tuple[list[AssessmentLabels], list[AssessmentLabels], list[AssessmentLabels], AssessmentLabels | None]:
    """Labels by the grouping that they were drawn for.

    Returns:
        Those of any vote; the others; those among these that were not drawn by votes; and those that were.
    """
    even: list[AssessmentLabels] = []
    uneven: list[AssessmentLabels] = []
    uneven_beside_votes: list[AssessmentLabels] = []
    by_votes: AssessmentLabels | None = None
    groupings = drawn.index.space.groupings
    for grouping in drawn.groupings():
        for any_vote in (False, True):
            members = np.flatnonzero(drawn.within(grouping, any_vote))
            if not members.size:
                continue
            groups = drawn.groups(grouping, any_vote)
            left, plain = (
                (None, None) if retained is None else (retained(members, any_vote), retained(members, True))
            )
            labels = AssessmentLabels(groups.numbers, members, groups.shares, left)
            (even if any_vote else uneven).append(labels)
            if not any_vote and grouping in groupings and groupings[grouping].is_by_votes:
                by_votes = labels
            elif not any_vote:
                uneven_beside_votes.append(AssessmentLabels(groups.numbers, members, groups.shares, plain))
    return even, uneven, uneven_beside_votes, by_votes


def _by_epochs(drawn: DrawnLabels, epochs: LabelEpochs, mass: Floats) -> Floats:
    """Weights of labels by how densely they were drawn from the traffic of their time [n].

    `mass` is the share of traffic now of every label cell, estimated from labels; any scale [cells].
    """
    index, cells = drawn.index, drawn.cells
    count, size = epochs.whole.shape[1], len(index.cells)
    draws = []
    for grouping in drawn.groupings():
        members, groups = drawn.within(grouping, False), drawn.groups(grouping, False)
        if not members.any() or groups.epochs is None:
            continue
        labels = np.zeros((len(groups.names) + 1, count))
        np.add.at(labels, groups.numbers[cells[members]], epochs.whole[members])
        draws.append(Draws(groups.numbers, labels, epoch_shares(groups.epochs.sum(axis=2), groups.shares)))
    whole, left = np.zeros((size, count)), np.zeros((size, count))
    np.add.at(whole, cells, epochs.whole)
    np.add.at(left, cells, epochs.left)
    regions = np.zeros(size, np.intp) if epochs.regions is None else epochs.regions
    margins = []
    for grouping, of in index.space.groupings.items():
        groups = index[grouping]
        if not isinstance(of, ByAttribute | ByClass) or groups.epochs is None:
            continue
        bins = groups.weights.shape[1]
        entries = np.where(groups.has_group, groups.cells * bins + index.cells.bins, groups.weights.size)
        counts = groups.epochs.reshape(count, -1)
        margins.append(Margin(entries, epoch_shares(counts, groups.weights.ravel() / groups.weights.sum())))
    ratios = share_ratios(mass, margins) if margins else np.ones((count, size))
    densities = epoch_label_densities(draws, retention_by_region(regions, whole, left), ratios)[cells]
    # Of cells without density age has left nothing: whatever stands for infinity would outweigh all others.
    return np.where(densities > 0, inverse(densities), 0.0)


def vote_shares(index: GroupIndex) -> Iterator[tuple[str, Floats]]:
    """Share of every vote in the traffic that a label cell has in common with cells of other votes.

    The voters' table has it by predicted class and score bin. What a challenger says is counted by the
    values of attributes too: given its vote, these are taken to be independent of one another, of class and
    of score.

    Yields:
        A vote that has traffic, in the order of its groups, and its share [cells]; shares of all votes sum
        to 1.
    """
    if index.space.voters is None:
        return
    attribute = index.space.voters[0]
    table, names = index.traffic.tables[attribute], index[attribute].names
    weights = table.block("class_bins").weights
    overall = weights.sum(axis=1)
    columns = index.cells.classes * index.space.bin_count + index.cells.bins
    total = weights.sum(axis=0)
    # Where there is no traffic of a class and bin, votes are taken to be distributed as in all traffic.
    weights = np.where(total > 0, weights, overall[:, None])
    shares = weights / np.maximum(weights.sum(axis=0), _TINY)
    if attribute != CHALLENGE:
        yield from ((name, shares[table.rows[name], columns]) for name in names)
        return
    plain = np.zeros((len(CHALLENGE_COLUMNS), len(columns)))
    for name in names:
        plain[CHALLENGE_COLUMNS.index(name)] = shares[table.rows[name], columns]
    likely = plain * _ratios(index)
    summed = likely.sum(axis=0)
    found = np.where(summed > 0, likely / np.maximum(summed, _TINY), plain)
    yield from ((name, found[CHALLENGE_COLUMNS.index(name)]) for name in names)


def _ratios(index: GroupIndex) -> Floats:
    """By how much attribute values make each of `CHALLENGE_COLUMNS` likelier [3, cells]."""
    ratios = np.ones((len(CHALLENGE_COLUMNS), len(index.cells)))
    by_value = {g.attribute: name for name, g in index.space.groupings.items() if isinstance(g, ByAttribute)}
    for grouping in by_value.values():
        agreement, groups = index.challenged(grouping), index[grouping]
        overall = agreement.sum(axis=0)
        expected = overall / max(float(overall.sum()), _TINY)
        own = agreement / np.maximum(agreement.sum(axis=1, keepdims=True), _TINY)
        found = np.vstack([ratio(own, expected, 0.0), np.ones((1, len(CHALLENGE_COLUMNS)))])
        ratios *= found[groups.numbers].T
    return ratios
