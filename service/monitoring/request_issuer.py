"""Snapshot -> label requests: the leader's part of a round, of one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from service.config.assessments import AssessmentSettings
from service.domain.arrays import Flags
from service.domain.cells import AGREE, DISAGREE
from service.monitoring.acquisition import AcquisitionState, acquisition_state, select_groups
from service.monitoring.assessment_snapshot import AssessmentSnapshot
from service.monitoring.further_labels import FurtherLabels
from service.monitoring.gold_requests import GoldQueue
from service.monitoring.item_drawer import Drawer
from service.monitoring.request_builder import RequestBuilder
from service.monitoring.round_draws import RoundDraws
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.stratum_drawer import StratumDrawer
from service.store.facts import TrafficFacts
from service.store.labelled_items import LabelledItem
from service.store.requests import Draw, Payment, RequestStore

MOST_REQUESTS_PER_ROUND = 500
"""Requests that one assessment issues in one round, at the most; the next round goes on."""


@dataclass(frozen=True)
class Round:
    """What the leader did for one model in one round."""

    issued: dict[str, int]  # per assessment
    aimed: dict[str, int]  # those among them whose group was asked for because it has drifted, per assessment
    shortfall: dict[str, int]  # requests that found nothing to draw, per assessment
    expired: int  # requests that ended unanswered
    reissued: int  # requests that were issued once more
    # those issued for groups whose reference is not complete, per assessment with any
    filled: dict[str, int] = field(default_factory=dict)
    gold: dict[str, int] = field(default_factory=dict)  # those for gold items, per assessment with any


class _Issued(NamedTuple):
    """What one assessment issued in one round, as in `Round`."""

    issued: int = 0
    aimed: int = 0
    shortfall: int = 0
    filled: int = 0
    gold: int = 0


_DrawItems = Callable[[Sequence[str]], list[Draw | None]]
"""Makes a request of the next item of every group that is named; None where its pool has none."""


@dataclass(frozen=True)
class _Wanted:
    """Labels that an assessment may request in a round."""

    available: int  # for any group
    reserve: int  # for suspected groups
    most: int  # in all

    def any_group(self, from_reserve: int) -> int:
        """Labels for any group, where so many are taken from the reserve."""
        return max(0, min(self.available, self.most - from_reserve))


@dataclass(frozen=True)
class RequestIssuer:
    """Requests labels of one model."""

    builder: RequestBuilder
    requests: RequestStore
    further: FurtherLabels
    gold: GoldQueue
    pool_ids: Mapping[str, str]  # by the grouping that asks
    rng: np.random.Generator

    def play(
        self, snapshot: ModelSnapshot | None, traffic: TrafficFacts | None, *, epoch: int, now: float
    ) -> Round:
        """Expire what is due, then let every assessment ask, by a snapshot and the traffic that it is of.

        Before the first snapshot nothing is asked. `epoch` is the leader's.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now.
        """
        renewals = [self.builder.renewal(due, now=now) for due in self.requests.due_requests(now=now)]
        ended = self.requests.renew(epoch=epoch, renewals=renewals, now=now)
        found: dict[str, _Issued] = {}
        if snapshot is not None and traffic is not None:
            again, drawn = self.further.wanted(epoch=epoch, now=now), RoundDraws()
            for name, settings in self.builder.settings.assessments.items():
                found[name] = self._ask_for(
                    name, settings, snapshot, traffic, again.get(name, ()), drawn=drawn, epoch=epoch, now=now
                )
        return Round(
            issued={name: one.issued for name, one in found.items()},
            aimed={name: one.aimed for name, one in found.items()},
            shortfall={name: one.shortfall for name, one in found.items()},
            expired=ended.count("expired"),
            reissued=ended.count("reissued"),
            filled={name: one.filled for name, one in found.items() if one.filled},
            gold={name: one.gold for name, one in found.items() if one.gold},
        )

    def _ask_for(
        self,
        name: str,
        settings: AssessmentSettings,
        snapshot: ModelSnapshot,
        traffic: TrafficFacts,
        labelled: Sequence[LabelledItem],
        *,
        drawn: RoundDraws,
        epoch: int,
        now: float,
    ) -> _Issued:
        """Requests for new items, and for some that were `labelled` and that somebody else is to label.

        These come first: what is known of the others depends on how reliable people are. `drawn` counts what
        was drawn in this round.
        """
        state, drawn_for = snapshot.assessments[name], settings.asked_grouping
        grouping = snapshot.groupings.get(settings.chosen_grouping)
        budget = state.budget
        most = min(settings.max_in_flight - state.open_requests, budget.remaining, MOST_REQUESTS_PER_ROUND)
        again = labelled[: max(0, min(budget.available, most))]
        most -= len(again)
        available = budget.available - len(again)
        reserve = 0 if state.aim is None else max(0, min(budget.reserve, most))
        wanted = min(available, most)
        if wanted <= 0 and reserve == 0 and not again:
            return _Issued()
        suspected = state.filling.suspected_names if state.filling else frozenset[str]()
        items = Drawer(self.requests, traffic.partitions, self.pool_ids[drawn_for])
        rates = snapshot.error_rates.get(name)
        drawer = items if rates is None else StratumDrawer(items, rates.plan, self.rng)

        def draw(groups: Sequence[str]) -> list[Draw | None]:
            return [
                None
                if item is None
                else self.builder.request(item, name, now=now, suspected=item.group in suspected)
                for item in drawer.draw(groups)
            ]

        aimed = filled = 0
        if (ensemble := snapshot.ensembles.get(name)) is not None:
            planned = self.rng.permutation(np.repeat(ensemble.groups, ensemble.plan))
            wanted = min(wanted, len(planned))
            draws = _found(draw(planned[:wanted].tolist()))
        elif (challenge := snapshot.challenges.get(name)) is not None:
            draws = self._pair(draw, challenge.aimed[DISAGREE], wanted)
        elif grouping and (
            asking := acquisition_state(settings, grouping, drawn.awaited(state), state.gains)
        ):
            wants = _Wanted(available, reserve, most)
            draws, aimed, filled = self._follow(draw, asking, state, wants)
            wanted = wants.any_group(min(reserve, aimed)) + min(reserve, aimed)
        else:
            draws, wanted = [], 0
        found = len(draws)
        draws = self._with_gold(draws, name, aimed + filled, now=now)
        draws += [self.builder.further_request(item, now=now) for item in again]
        statuses = self.requests.issue(
            epoch=epoch,
            assessment=name,
            payment=Payment(
                budget.window,
                settings.budget.labels,
                budget.spending,
                budget.stored,
                from_reserve=min(reserve, aimed),
            ),
            now=now,
            draws=draws,
        )
        drawn.add(drawn_for, draws, statuses)
        return _Issued(
            issued=statuses.count("issued"),
            aimed=statuses[:aimed].count("issued"),
            shortfall=wanted - found,
            filled=statuses[aimed : aimed + filled].count("issued"),
            gold=sum(
                status == "issued" and each.open.gold for status, each in zip(statuses, draws, strict=True)
            ),
        )

    def _with_gold(self, draws: list[Draw], name: str, first: int, *, now: float) -> list[Draw]:
        """The same draws, with some of those from number `first` on replaced by gold items.

        A random part of these stays in the pools: they are in the order in which they were named, so leaving
        the last ones would change the sample. Gold items are at random places, as requests are published in
        their order.
        """
        settings = self.builder.settings.labels_per_item.gold
        if settings is None:
            return draws
        wanted = min(int(self.rng.binomial(len(draws), settings.share)), len(draws) - first)
        items = self.gold.next(wanted)
        left = {*self.rng.choice(np.arange(first, len(draws)), len(items), replace=False).tolist()}
        mixed = [draw for place, draw in enumerate(draws) if place not in left]
        for item in items:
            place = int(self.rng.integers(first, len(mixed), endpoint=True))
            mixed.insert(place, self.builder.gold_request(item, name, now=now))
        return mixed

    def _follow(
        self, draw: _DrawItems, asking: AcquisitionState, state: AssessmentSnapshot, wants: _Wanted
    ) -> tuple[list[Draw], int, int]:
        """As many items as are wanted, or as the pool has: the policy names groups step by step.

        Where groups are suspected, it names its share of them first, and those that the reserve pays; then
        references that are not complete name theirs. The items of both come first, and their numbers are
        returned too. What they do not find is the policy's.

        A request, in flight or named in this round, counts as answered with what is expected of it. As many
        groups are named as labels are wanted, and then their items are drawn, all at once. Groups without a
        further item wait for the next round, and the next best are named.
        """
        available = asking.situation.available
        draws: list[Draw] = []
        counts: list[int] = []  # items of suspected groups, then of groups with incomplete references
        wanted = wants.any_group(wants.reserve)
        while len(counts) < 2 or len(draws) < wanted:  # noqa: PLR2004 - both are named before the policy
            left = wanted - len(draws)
            named = self._next_groups(
                len(counts), asking, state, available=available, wanted=left, reserve=wants.reserve
            )
            if not named and len(counts) == 2:  # noqa: PLR2004 - the policy names none
                break
            available = available.copy()
            for group, item in zip(named, draw([state.groups[group] for group in named]), strict=True):
                if item is None:
                    available[0, group] = False
                else:
                    asking.situation.expect(np.array([group]))
                    draws.append(item)
            if not counts:
                counts.append(len(draws))
                wanted = wants.any_group(min(wants.reserve, len(draws))) + min(wants.reserve, len(draws))
            elif len(counts) == 1:
                counts.append(len(draws) - counts[0])
        aimed, filled = counts
        return draws, aimed, filled

    def _next_groups(
        self,
        step: int,
        asking: AcquisitionState,
        state: AssessmentSnapshot,
        *,
        available: Flags,
        wanted: int,
        reserve: int,
    ) -> list[int]:
        """Groups to ask: suspicion names them at step 0, incomplete references at step 1, then the policy."""
        if step == 0:
            aim = state.aim
            return [] if aim is None else aim.groups(available[0], wanted, self.rng, reserve=reserve)
        if step == 1:
            return [] if state.filling is None else state.filling.groups(available[0], wanted, self.rng)
        return select_groups(asking, available, wanted, self.rng)

    def _pair(self, draw: _DrawItems, share: float, wanted: int) -> list[Draw]:
        """Items on which champion and challenger disagree, by their share of all, and others beside them.

        No more others than go with the disagreements that are found: else, round by round, the budget would
        go to agreements where disagreements are rare, and nothing be left once one comes.
        """
        aimed = int(self.rng.binomial(wanted, share))
        others = wanted - aimed
        draws: list[Draw] = []
        if share > 0:
            draws = _found(draw([DISAGREE] * max(aimed, 1)))
            if not draws:
                return []
            if len(draws) < aimed:
                fitting = len(draws) * (1 - share) / share
                others = min(others, int(fitting + self.rng.random()))
            draws = draws[:aimed]
        return draws + _found(draw([AGREE] * others))


def _found(draws: Sequence[Draw | None]) -> list[Draw]:
    """Those of groups whose pool had an item; the next round plans again."""
    return [draw for draw in draws if draw is not None]
