"""Which labels are evidence on error rates (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Flags, Floats, UInt64s
from service.domain.cells import grouping_key
from service.domain.request_order import NO_PLACE
from service.monitoring.evidence_base import arrival_order
from service.monitoring.group_index import GroupIndex
from service.monitoring.open_places import first_open
from service.monitoring.outcome_aggregates import NO_CLASS
from service.monitoring.outcome_rows import GroupKey, stratum_group
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.rate_base import RateBase
from service.statistics.balance_heuristic import sums
from service.statistics.rates.label_evidence import StratumDraws


@dataclass(frozen=True)
class Labelled:
    """Labels of the groups of one grouping that are evidence."""

    groups: list[str]
    arrivals: list[str]  # in the order of their first requests, also those without traffic now
    base: RateBase  # what labels said that are not among these
    draws: StratumDraws  # of strata that were drawn
    marks: UInt64s  # of these: which outcome each is, and what its label says [n]
    labels: Floats  # random items, by whether they are positive, and selected [G, 2, 2]
    unlabelled: Floats  # those that may have any true class, by whether they are selected [G, 2]
    wrong_labels: float = 0.0  # share that is wrong at most, of each kind: positive or not, selected or not

    def part(self, which: Flags) -> Labelled:
        """Of some groups [G]."""
        chosen, places = which[self.draws.groups], np.cumsum(which) - 1
        draws = self.draws.part(chosen)
        return replace(
            self,
            groups=[name for name, is_in in zip(self.groups, which.tolist(), strict=True) if is_in],
            draws=replace(draws, groups=places[draws.groups]),
            marks=self.marks[chosen],
            labels=self.labels[which],
            unlabelled=self.unlabelled[which],
        )


def evidence_labels(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    opened: Mapping[GroupKey, int],
    *,
    now: float,
    since: float | None,
    any_class: Collection[int],
    base: RateBase,
    wrong_labels: float = 0.0,
    until: int = NO_PLACE,
) -> Labelled:
    """Labels of an assessment's groups that are evidence, by requests before the place `until`.

    It begins with what was predicted `since` the end of the reference window, if one was set. `opened` has
    the places of the first open requests, as of `open_places`. At most the share `wrong_labels` is wrong.
    """
    groups, positive_class = index[settings.grouping], index.space.classes.index(settings.positive_class)
    asked = settings.asked_grouping
    drawn = ledger.stratum_labels(asked, at=now, unanswered=any_class)
    key = grouping_key(asked, index.space.groupings[asked].definition(index.space.score_edges))
    # Labels that come late may be of another kind than those that come at once.
    first_still_open = first_open(opened, key, groups.names)
    ended = np.append(np.minimum(first_still_open, np.uint64(until)), np.uint64(0))
    counts = (drawn.places < ended[groups.numbers[drawn.cells]]) & (drawn.places > base.position)
    if since is not None:
        counts &= drawn.predicted_at >= since
    drawn = drawn.part(counts)
    positive = drawn.true_classes == positive_class
    labels, unlabelled = _sampled(
        settings, index, ledger, positive_class, now=now, since=since, any_class=any_class
    )
    firsts = {
        of[1]: place
        for drawn_for, place in ledger.first_requests().items()
        if (of := stratum_group(drawn_for)) is not None and of[0] == key
    }
    for name, place in zip(groups.names, first_still_open.tolist(), strict=True):
        firsts[name] = min(place, firsts.get(name, NO_PLACE))
    return Labelled(
        groups=groups.names,
        arrivals=arrival_order(base.arrived, firsts, until=until),
        base=base,
        draws=StratumDraws(
            groups=groups.cells[drawn.cells],
            selected=index.cells.classes[drawn.cells] == positive_class,
            positive=positive,
            has_label=drawn.true_classes >= NO_CLASS,
            estimators=drawn.estimators,
        ),
        marks=drawn.marks + positive.astype(np.uint64),
        labels=labels,
        unlabelled=unlabelled,
        wrong_labels=wrong_labels,
    )


def _sampled(
    settings: ErrorRateSettings,
    index: GroupIndex,
    ledger: OutcomeLedger,
    positive_class: int,
    *,
    now: float,
    since: float | None,
    any_class: Collection[int],
) -> tuple[Floats, Floats]:
    """Labels of an even sample of all traffic, and items of it without one, as `Labelled` has them."""
    groups = index[settings.grouping]
    shape = len(groups.names), 2
    if not ledger.samples_traffic:
        return np.zeros((*shape, 2)), np.zeros(shape)
    outcomes = ledger.sums(at=now, decay=0.0, since=since, unanswered=any_class)
    chosen = outcomes.part(ledger.of_traffic[outcomes.sources] & groups.has_group[outcomes.cells])
    selected = index.cells.classes[chosen.cells] == positive_class
    place = 2 * groups.cells[chosen.cells] + selected
    counts, size = chosen.counts.astype(np.float64), 2 * len(groups.names)
    is_open, positive = chosen.true_classes < NO_CLASS, chosen.true_classes == positive_class
    labels = [
        sums(place, counts * (~is_open & (positive == kind)), size).reshape(shape) for kind in (False, True)
    ]
    return np.stack(labels, axis=1), sums(place, counts * is_open, size).reshape(shape)
