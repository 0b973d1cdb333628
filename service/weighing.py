"""Facts -> what every label weighs, by the balance heuristic (pure).

Labels of predictions that carried no votes, because nobody voted yet, tell of the model what they told
before. They stand for predictions of any vote, of the same attributes, class and score, and say nothing of
groups by votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.assessment.weights import Asked, asked_densities, balance_weights, even_say, sums
from service.cells import ALL, MISSING, CellSpace
from service.ledger import OutcomeLedger
from service.store.facts import TrafficFacts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Weighed:
    """What labels weigh, any scale.

    Attributes:
        weights: of every label [n].
        voted: which say something of groups by votes [n]; None if all do.
        weights_by_votes: of every label, there [n].
    """

    weights: Floats
    voted: Flags | None
    weights_by_votes: Floats


def seen_in_traffic(
    space: CellSpace,
    ledger: OutcomeLedger,
    traffic: TrafficFacts,
    there: Flags,
    *,
    cells: Indices,
    sources: Indices,
) -> Flags:
    """Which labels count [n]: what is in no cell of the traffic tells nothing about it.

    Nor does what was asked for nobody knows how densely.

    Args:
        space: cells of the model.
        ledger: who asked.
        traffic: of the model.
        there: which cells have traffic [cells].
        cells: cell of every label [n].
        sources: codes of who asked for it [n].
    """
    found = there[cells]
    any_vote = ledger.of_any_vote[sources]
    if any_vote.any():
        strata = space.cells_of_any_vote(traffic.combinations)
        found |= any_vote & (np.bincount(strata, weights=there) > 0)[strata[cells]]
    return found & ledger.evenly_asked[sources]


def weighed(
    space: CellSpace,
    ledger: OutcomeLedger,
    traffic: TrafficFacts,
    *,
    cells: Indices,
    sources: Indices,
    freshness: Floats,
    kept: Callable[[Indices, bool], Floats | None] | None = None,
) -> Weighed:
    """What labels weigh.

    Args:
        space: cells of the model.
        ledger: who asked.
        traffic: of the model.
        cells: cell of every label [n].
        sources: codes of who asked for it [n].
        freshness: what forgetting leaves of each [n].
        kept: what changes leave of some labels, of any vote or not, by cell [cells], if not all of all.
    """
    weights = traffic.traffic.weights
    asked: dict[bool, list[Asked]] = {False: [], True: []}
    of_any_vote = ledger.of_any_vote
    for grouping in sorted({name for source in ledger.sources for name in source.groupings}):
        drawn = ledger.asked_for(grouping)
        known = grouping if grouping in space.groupings else ALL
        for any_vote in (False, True):
            members = np.flatnonzero((drawn & (of_any_vote == any_vote))[sources])
            if members.size:
                groups = space.groups(known, traffic.combinations)[1]
                left = None if kept is None else kept(members, any_vote)
                asked[any_vote].append(Asked(groups, members, left))
    if space.voters is None or not asked[True]:
        plain = balance_weights(cells=cells, freshness=freshness, traffic=weights, asked=asked[False])
        return Weighed(plain, None, plain)
    told, untold = (
        asked_densities(cells=cells, freshness=freshness, traffic=weights, asked=asked[any_vote])
        for any_vote in (False, True)
    )
    strata = space.cells_of_any_vote(traffic.combinations)
    say = even_say(even=untold, uneven=told, traffic=weights, strata=strata)[cells]
    stand_for_all = ledger.of_any_vote[sources]
    names, votes = space.attribute_values(space.voters[0], traffic.combinations)
    without = np.array([name == MISSING for name in names], np.bool_)[votes] & (weights > 0)
    # Labels from before stand for all traffic of their stratum, but are all in its part without votes.
    size = sums(strata, weights, int(strata.max()) + 1)[strata]
    in_part = np.divide(
        untold * size, np.maximum(weights, 1e-30 * size), out=np.zeros(len(weights)), where=without
    )
    return Weighed(
        weights=np.where(stand_for_all, say * _inverse(untold[cells]), (1 - say) * _inverse(told[cells])),
        voted=~stand_for_all | without[cells],
        weights_by_votes=_inverse((told + in_part)[cells]),
    )


def _inverse(densities: Floats) -> Floats:
    return 1 / np.maximum(densities, np.finfo(float).tiny)
