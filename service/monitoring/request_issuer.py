"""Snapshot -> label requests: the leader's part of a round, of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.config.assessments import AssessmentSettings
from service.config.model import ModelSettings
from service.domain.cells import AGREE, DISAGREE, CellSpace
from service.domain.grouping_fingerprints import definitions
from service.monitoring.acquisition import Aim, Standing, named_groups, standing
from service.monitoring.pool_sampler import Drawer, Pooled
from service.monitoring.request_builder import renewal_of, request_of
from service.monitoring.snapshot import ModelSnapshot
from service.monitoring.vendor_routing import VendorAssignment
from service.store.facts import TrafficFacts
from service.store.requests import Draw, RequestStore

MOST_REQUESTS_PER_ROUND = 500
"""Requests that one assessment issues in one round, at the most; the next round goes on."""


@dataclass(frozen=True)
class Round:
    """What the leader did for one model in one round.

    Attributes:
        issued: requests issued, per assessment.
        aimed: those among them whose group was asked for because it has drifted, per assessment.
        shortfall: requests that found nothing to draw, per assessment.
        expired: requests that ended unanswered.
        reissued: requests that were issued once more.
    """

    issued: dict[str, int]
    aimed: dict[str, int]
    shortfall: dict[str, int]
    expired: int
    reissued: int


class RequestIssuer:
    """Asks for labels of one model.

    Args:
        model: its name.
        settings: its settings.
        space: its cells.
        requests: its label requests.
        pool_ids: ids of pools, by the grouping that asks.
        rng: for Thompson sampling.
        assignment: which vendor is asked.
    """

    def __init__(
        self,
        model: str,
        settings: ModelSettings,
        space: CellSpace,
        *,
        requests: RequestStore,
        pool_ids: Mapping[str, str],
        rng: np.random.Generator,
        assignment: VendorAssignment,
    ) -> None:
        self._model = model
        self._settings = settings
        self._space = space
        self._definitions = definitions(space)
        self._requests = requests
        self._pool_ids = pool_ids
        self._rng = rng
        self._assignment = assignment

    def play(
        self, snapshot: ModelSnapshot | None, traffic: TrafficFacts | None, *, epoch: int, now: float
    ) -> Round:
        """Expire what is due, then let every assessment ask.

        Args:
            snapshot: by which; None before the first, when nothing is asked.
            traffic: the facts that the snapshot was taken from.
            epoch: the leader's.
            now: seconds since the epoch.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now.
        """
        expired, reissued = self._expire(epoch, now)
        issued: dict[str, int] = {}
        aimed: dict[str, int] = {}
        shortfall: dict[str, int] = {}
        if snapshot is not None and traffic is not None:
            for name, settings in self._settings.assessments.items():
                issued[name], aimed[name], shortfall[name] = self._ask_for(
                    name, settings, snapshot, traffic, epoch=epoch, now=now
                )
        return Round(issued, aimed, shortfall, expired, reissued)

    def _expire(self, epoch: int, now: float) -> tuple[int, int]:
        renewals = [
            renewal_of(
                due, self._settings.assessments.get(due.open.assessment), assignment=self._assignment, now=now
            )
            for due in self._requests.due(now=now)
        ]
        statuses = self._requests.renew(epoch=epoch, renewals=renewals, now=now)
        return statuses.count("expired"), statuses.count("reissued")

    def _ask_for(
        self,
        name: str,
        settings: AssessmentSettings,
        snapshot: ModelSnapshot,
        traffic: TrafficFacts,
        *,
        epoch: int,
        now: float,
    ) -> tuple[int, int, int]:
        state = snapshot.assessments[name]
        grouping = snapshot.groupings.get(settings.asked_grouping)
        wanted = min(
            settings.max_in_flight - state.open_requests,
            state.budget_remaining,
            MOST_REQUESTS_PER_ROUND,
        )
        ensemble, aimed = snapshot.ensembles.get(name), 0
        if ensemble is not None and wanted > 0:
            planned = np.repeat(ensemble.groups, ensemble.plan.more)
            wanted = min(wanted, len(planned))
            named = self._rng.permutation(planned)[:wanted].tolist()
            draws = self._planned(name, settings, named, traffic=traffic, now=now)
        elif (challenge := snapshot.challenges.get(name)) is not None and wanted > 0:
            share = challenge.aimed[DISAGREE]
            draws = self._paired(name, settings, share, traffic=traffic, wanted=wanted, now=now)
        elif grouping and wanted > 0 and (stands := standing(settings, grouping, state.in_flight)):
            draws, aimed = self._draws(
                name,
                settings,
                stands,
                state.aim,
                names=grouping.groups,
                traffic=traffic,
                wanted=wanted,
                now=now,
            )
        else:
            return 0, 0, 0
        statuses = self._requests.issue(
            epoch=epoch,
            assessment=name,
            window=state.window,
            budget=settings.budget.labels,
            now=now,
            draws=draws,
        )
        return statuses.count("issued"), statuses[:aimed].count("issued"), wanted - len(draws)

    def _draws(
        self,
        name: str,
        settings: AssessmentSettings,
        stands: Standing,
        aim: Aim | None,
        *,
        names: list[str],
        traffic: TrafficFacts,
        wanted: int,
        now: float,
    ) -> tuple[list[Draw], int]:
        """As many items as are wanted, or as the pool has: the policy names groups step by step.

        Where groups have drifted, suspicion names its share of them first; the items that it names come
        first, and their number is returned too. What it does not find is the policy's.

        A request, in flight or named in this round, counts as answered with what is expected of it. As many
        groups are named as labels are wanted, and then their items are drawn, all at once. Groups without a
        further item wait for the next round, and the next best are named.
        """
        beliefs, available = stands.situation.beliefs, stands.situation.available
        drawer = self._drawer(settings, traffic)
        draws: list[Draw] = []
        aimed = 0
        suspected = [] if aim is None else aim.groups(available[0], wanted, self._rng)
        while len(draws) < wanted:
            named = suspected or named_groups(stands, beliefs, available, wanted - len(draws), self._rng)
            if not named:
                break
            available = available.copy()
            for group, item in zip(named, drawer.draw([names[group] for group in named]), strict=True):
                if item is None:
                    available[0, group] = False
                else:
                    beliefs.expect(np.array([group]))
                    draws.append(self._request(name, settings, item, names[group], now))
            if suspected:
                suspected, aimed = [], len(draws)
        return draws, aimed

    def _planned(
        self, name: str, settings: AssessmentSettings, named: list[str], *, traffic: TrafficFacts, now: float
    ) -> list[Draw]:
        """An item of each named group, but where the pool has none; the next round plans anew."""
        found = zip(named, self._drawer(settings, traffic).draw(named), strict=True)
        return [self._request(name, settings, item, group, now) for group, item in found if item is not None]

    def _paired(
        self,
        name: str,
        settings: AssessmentSettings,
        share: float,
        *,
        traffic: TrafficFacts,
        wanted: int,
        now: float,
    ) -> list[Draw]:
        """Items on which champion and challenger disagree, by their share of all, and others beside them.

        No more others than go with the disagreements that are found: else, round by round, the budget would
        go to agreements where disagreements are rare, and nothing be left once one comes.
        """
        aimed = int(self._rng.binomial(wanted, share))
        others = wanted - aimed
        draws: list[Draw] = []
        if share > 0:
            draws = self._planned(name, settings, [DISAGREE] * max(aimed, 1), traffic=traffic, now=now)
            if not draws:
                return []
            if len(draws) < aimed:
                fitting = len(draws) * (1 - share) / share
                others = min(others, int(fitting + self._rng.random()))
            draws = draws[:aimed]
        return draws + self._planned(name, settings, [AGREE] * others, traffic=traffic, now=now)

    def _drawer(self, settings: AssessmentSettings, traffic: TrafficFacts) -> Drawer:
        return Drawer(self._requests, traffic.partitions, self._pool_ids[settings.asked_grouping])

    def _request(self, name: str, settings: AssessmentSettings, item: Pooled, group: str, now: float) -> Draw:
        return request_of(
            item,
            model=self._model,
            classes=self._settings.classes,
            assessment=name,
            settings=settings,
            group=group,
            voters=self._space.aimed_by(settings.asked_grouping),
            definition=self._definitions[settings.asked_grouping],
            assignment=self._assignment,
            now=now,
        )
