"""Importance weights of labels under the balance heuristic, from facts (pure).

Labels of predictions that carried no votes, because nobody voted yet, tell of the model what they told
before. They stand for predictions of any vote, of the same attributes, class and score, and say nothing of
groups by votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from service.domain.arrays import Flags, Floats, Indices
from service.domain.cells import ALL, MISSING
from service.monitoring.group_index import GroupIndex, Groups
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.vote_shares import vote_shares
from service.statistics.balance_heuristic import (
    Asked,
    asked_densities,
    balance_weights,
    even_say,
    group_densities,
    inverse,
    sums,
)
from service.statistics.epochs import (
    Draws,
    Margin,
    drawn_densities,
    epoch_shares,
    left_by_region,
    share_ratios,
)


@dataclass(frozen=True)
class Weighed:
    """Weights of labels, any scale.

    Attributes:
        weights: of every label [n].
        voted: which say something of groups by votes [n]; None if all do.
        weights_by_votes: of every label, there [n].
    """

    weights: Floats
    voted: Flags | None
    weights_by_votes: Floats


@dataclass(frozen=True)
class LabelEpochs:
    """Labels by epochs of traffic.

    Attributes:
        whole: what age leaves of them, by sum and epoch [n, E].
        left: what changes leave of that [n, E].
        regions: of every label cell, a number that cells share which changed alike; None if nothing did
            [cells].
    """

    whole: Floats
    left: Floats
    regions: Indices | None


def select_counting(index: GroupIndex, ledger: OutcomeLedger, *, cells: Indices, sources: Indices) -> Flags:
    """Which labels count [n]: those that were drawn for a group that has traffic.

    A label that was drawn for groups without traffic tells nothing about the traffic. Nor does one of which
    it is not known how densely it was drawn: such as one that was drawn for a value which has lost its row
    since. Of the traffic of `OTHER` it is no even sample, and nobody knows what share its value has there.

    Args:
        index: groups of the model.
        ledger: who asked.
        cells: label cell of every label [n].
        sources: codes of who asked for it [n].
    """
    found = np.zeros(len(cells), np.bool_)
    for grouping in _asking(ledger):
        for any_vote in (False, True):
            drawn = _drawn(ledger, grouping, any_vote)
            if drawn.any():
                drawn_here = _drawn_here(index, ledger, grouping, any_vote, cells=cells, sources=sources)
                found |= drawn_here & _groups(index, grouping, any_vote).there[cells]
    return found & ledger.evenly_asked[sources] if len(found) else found


def weighed(
    index: GroupIndex,
    ledger: OutcomeLedger,
    *,
    cells: Indices,
    sources: Indices,
    freshness: Floats,
    kept: Callable[[Indices, bool], Floats | None] | None = None,
    epochs: LabelEpochs | None = None,
) -> Weighed:
    """Weights of labels.

    Args:
        index: groups of the model.
        ledger: who asked.
        cells: label cell of every label [n].
        sources: codes of who asked for it [n].
        freshness: what forgetting leaves of each [n].
        kept: what changes leave of some labels, if not all of all, by label cell [cells]; the flag leaves out
            changes of groups by votes.
        epochs: the same labels by epochs of traffic, where these are known.
    """
    voters = index.space.voters
    even, uneven, uneven_beside_votes, by_votes = _asked(index, ledger, cells, sources, kept)
    if voters is None or not even:
        weights = balance_weights(cells=cells, freshness=freshness, asked=uneven)
        if epochs is not None and len(cells):
            mass = sums(cells, weights * freshness, len(index.cells))
            weights = _by_epochs(index, ledger, epochs, mass, cells=cells, sources=sources)
        return Weighed(weights, None, weights)

    def densities(asked: list[Asked]) -> Floats:
        return asked_densities(cells=cells, freshness=freshness, asked=asked, cell_count=len(index.cells))

    of_even, of_uneven, beside = densities(even), densities(uneven), densities(uneven_beside_votes)
    votes = index[voters[0]]
    aimed = np.zeros(len(votes.names) + 1)
    if by_votes is not None:
        aimed = group_densities(by_votes, cells=cells, freshness=freshness)
    # Of all votes the same for cells that are alike in everything else, as `even_say` needs.
    shares = ((share, beside + aimed[vote]) for vote, (_, share) in enumerate(vote_shares(index)))
    unlabelled = float(votes.shares[aimed[:-1] == 0].sum())
    say = even_say(even=of_even, parts=shares, unlabelled=unlabelled)[cells]
    stand_for_all = ledger.of_any_vote[sources]
    without = np.zeros(len(index.cells), np.bool_)
    if MISSING in votes.names:
        without = votes.there & (votes.cells == votes.names.index(MISSING))
    share_without = next((share for name, share in vote_shares(index) if name == MISSING), np.zeros(1))
    # Labels from before stand for all traffic of their stratum, but are all in its part without votes.
    in_part = np.divide(
        of_even, np.maximum(share_without, 1e-30), out=np.zeros(len(index.cells)), where=without
    )
    return Weighed(
        weights=np.where(stand_for_all, say * inverse(of_even[cells]), (1 - say) * inverse(of_uneven[cells])),
        voted=~stand_for_all | without[cells],
        weights_by_votes=inverse((of_uneven + in_part)[cells]),
    )


def _asked(
    index: GroupIndex,
    ledger: OutcomeLedger,
    cells: Indices,
    sources: Indices,
    kept: Callable[[Indices, bool], Floats | None] | None,
) -> tuple[list[Asked], list[Asked], list[Asked], Asked | None]:
    """Labels by the grouping that they were drawn for.

    Returns:
        Those of any vote; the others; those among these that were not drawn by votes; and those that were.
    """
    even: list[Asked] = []
    uneven: list[Asked] = []
    uneven_beside_votes: list[Asked] = []
    by_votes: Asked | None = None
    for grouping in _asking(ledger):
        for any_vote in (False, True):
            members = np.flatnonzero(
                _drawn_here(index, ledger, grouping, any_vote, cells=cells, sources=sources)
            )
            if not members.size:
                continue
            groups = _groups(index, grouping, any_vote)
            left, plain = (None, None) if kept is None else (kept(members, any_vote), kept(members, True))
            asked = Asked(groups.numbers, members, groups.shares, left)
            (even if any_vote else uneven).append(asked)
            if not any_vote and _is_by_votes(index, grouping):
                by_votes = asked
            elif not any_vote:
                uneven_beside_votes.append(Asked(groups.numbers, members, groups.shares, plain))
    return even, uneven, uneven_beside_votes, by_votes


def _by_epochs(
    index: GroupIndex,
    ledger: OutcomeLedger,
    epochs: LabelEpochs,
    mass: Floats,
    *,
    cells: Indices,
    sources: Indices,
) -> Floats:
    """Weights of labels by how densely they were drawn from the traffic of their time [n].

    Args:
        index: groups of the model, with their traffic by epochs.
        ledger: who asked.
        epochs: the labels by epochs.
        mass: share of traffic now of every label cell, as labels tell it; any scale [cells].
        cells: label cell of every label [n].
        sources: codes of who asked for it [n].
    """
    count, size = epochs.whole.shape[1], len(index.cells)
    draws = []
    for grouping in _asking(ledger):
        members = _drawn_here(index, ledger, grouping, False, cells=cells, sources=sources)
        groups = _groups(index, grouping, False)
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
        if of.kind not in ("attribute", "predicted_class") or groups.epochs is None:
            continue
        bins = groups.weights.shape[1]
        entries = np.where(groups.there, groups.cells * bins + index.cells.bins, groups.weights.size)
        counts = groups.epochs.reshape(count, -1)
        margins.append(Margin(entries, epoch_shares(counts, groups.weights.ravel() / groups.weights.sum())))
    ratios = share_ratios(mass, margins) if margins else np.ones((count, size))
    densities = drawn_densities(draws, left_by_region(regions, whole, left), ratios)[cells]
    # Of cells without density age has left nothing: whatever stands for infinity would outweigh all others.
    return np.where(densities > 0, inverse(densities), 0.0)


def _asking(ledger: OutcomeLedger) -> list[str]:
    """Groupings that labels were drawn for."""
    return sorted({name for source in ledger.sources for name in source.groupings})


def _drawn(ledger: OutcomeLedger, grouping: str, any_vote: bool) -> Flags:
    """Of every source, whether labels were drawn for a grouping, and stand for any vote or not [sources]."""
    drawn: Flags = ledger.asked_for(grouping) & (ledger.of_any_vote == any_vote)
    return drawn


def _drawn_here(
    index: GroupIndex,
    ledger: OutcomeLedger,
    grouping: str,
    any_vote: bool,
    *,
    cells: Indices,
    sources: Indices,
) -> Flags:
    """Which labels were drawn for a grouping, evenly within the groups that they are in now [n]."""
    if not len(sources):
        return np.zeros(0, np.bool_)
    drawn: Flags = _drawn(ledger, grouping, any_vote)[sources]
    if grouping in index.space.groupings and (by_value := ledger.drawn_by_value(grouping)).any():
        drawn &= ~(by_value[sources] & index.folded(grouping)[cells])
    return drawn


def _groups(index: GroupIndex, grouping: str, any_vote: bool) -> Groups:
    """Groups within which labels were drawn evenly.

    Before anybody voted all traffic was without votes, so that labels for that group were drawn from all.
    """
    is_known = grouping in index.space.groupings
    return index[ALL if not is_known or (any_vote and _is_by_votes(index, grouping)) else grouping]


def _is_by_votes(index: GroupIndex, grouping: str) -> bool:
    return index.space.voters is not None and grouping == index.space.voters[0]
