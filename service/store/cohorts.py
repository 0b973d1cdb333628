"""Cohorts of predictions that wait for unrequested labels: the leader closes and removes them.

A cohort is what arrived in one hour. Its outcomes enter the stream together, once enough of its items have a
label or it has waited long enough. So labels that come early do not count for more. `lua/joins.lua` says how
cohorts are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from service.config.unrequested import UnrequestedLabels
from service.domain.pending_joins import HOUR_SECONDS
from service.store.connection import Connection, ModelStore, translate_redis_errors
from service.store.joins import NOT_JOINED
from service.store.keys import ModelKeys
from service.store.records import ABSENT, LabelFact, encode_packed

MOST_DIGESTS_PER_ROUND = 10_000
"""Items that one round looks at, about; the next round goes on."""

_DIGESTS_PER_STEP = 500
"""Redis does nothing else for a few milliseconds."""

_LEAST_PER_STEP = 20
"""A step takes as long as so many digests, however few it looks at."""

_Step = Literal["thin", "close", "empty", "remove"]


@dataclass(frozen=True)
class Cohort:
    """What arrived in one hour.

    Attributes:
        hour: of its arrival, in hours since the epoch.
        state: `o` if it is open, `c` if it is being closed, `d` if that is done, `r` if it was opened again
            after that, `x` if it was dropped.
        level: 1 in 2^level of its predictions is in the sample.
        items: that wait.
        labels: those of them that have a label.
        thin: items to look at, because the level has risen.
    """

    hour: int
    state: str
    level: int
    items: int
    labels: int
    thin: int

    @property
    def end(self) -> float:
        """When its hour ended, in seconds since the epoch."""
        return (self.hour + 1) * HOUR_SECONDS

    @property
    def is_open(self) -> bool:
        """Whether predictions wait that nobody has begun to count."""
        return self.state in "or"


@dataclass(frozen=True)
class JoinSummary:
    """What waits for unrequested labels.

    Attributes:
        items: predictions that wait.
        level: 1 in 2^level of the predictions that arrive now is in the sample.
        closed: items whose cohort is closed, and whose label can still be revised.
        dropped: cohorts that were dropped ever, as too much arrived at once.
        oldest: when the hour of the oldest cohort that is not closed began, seconds since the epoch, or None.
        not_joined: labels ever that found no prediction, by reason. A batch that is read again counts again.
        cohorts: all of them, in order of time.
    """

    items: int
    level: int
    closed: int
    dropped: int
    oldest: float | None
    not_joined: Mapping[str, int]
    cohorts: tuple[Cohort, ...]

    @property
    def share(self) -> float:
        """Share of the predictions that is in the sample."""
        return 2.0**-self.level


def parse_summary(fields: Mapping[bytes, bytes]) -> JoinSummary:
    """From the hash of cohorts."""
    cohorts = [_cohort(int(name), text.decode()) for name, text in fields.items() if name.isdigit()]
    cohorts.sort(key=lambda cohort: cohort.hour)
    return JoinSummary(
        items=sum(map(int, fields.get(b"depths", b"").split())),
        level=int(fields.get(b"level", 0)),
        closed=int(fields.get(b"closed", 0)),
        dropped=int(fields.get(b"dropped", 0)),
        oldest=next((each.hour * HOUR_SECONDS for each in cohorts if each.state in "orc"), None),
        not_joined={
            reason: int(number)
            for reason in NOT_JOINED
            if (number := fields.get(f"label:{reason}".encode())) is not None
        },
        cohorts=tuple(cohorts),
    )


def _cohort(hour: int, text: str) -> Cohort:
    state, *numbers = text.split()
    return Cohort(hour, state, *map(int, numbers))


class CohortStore(ModelStore):
    """The cohorts of one model.

    Args:
        rule: says when a cohort is closed.
        join_items: how many predictions wait for a label, about, and how many may be revised after that.
        join_seconds: how long at most.
        outcome_limit: how many entries the outcome stream keeps, about.
    """

    def __init__(
        self,
        connection: Connection,
        keys: ModelKeys,
        rule: UnrequestedLabels,
        *,
        join_items: int,
        join_seconds: float,
        outcome_limit: int,
    ) -> None:
        super().__init__(connection, keys)
        self._rule = rule
        self._join_items = join_items
        self._join_seconds = join_seconds
        self._wait_seconds = join_seconds if rule.wait_days is None else rule.wait_days * 86_400
        self._outcome_limit = outcome_limit

    def summary(self) -> JoinSummary:
        """What waits."""
        with translate_redis_errors():
            return parse_summary(self._connection.client.hgetall(self._keys.cohorts))

    def advance(
        self, summary: JoinSummary, *, epoch: int, now: float, most: int = MOST_DIGESTS_PER_ROUND
    ) -> int:
        """Thin out, close and remove what is due by what waited lately; how many outcomes it added.

        Cohorts close in the order of time: no one does before an earlier one that is incomplete. Else hours
        without late labels would count first, and these may be hours with few errors.

        It stops after about `most` items, and goes on there when it is called again.

        Raises:
            FenceRefused: a newer leader has written.
            Unavailable: Redis cannot answer now.
        """
        excess, left, outcomes = summary.closed - self._join_items, most, 0
        earlier_waits = False
        for cohort in summary.cohorts:
            steps = self._steps(cohort, now, excess=excess, earlier_waits=earlier_waits)
            earlier_waits = earlier_waits or (cohort.state == "o" and "close" not in steps)
            for step in steps:
                count, added, finished = self._run(cohort, step, epoch=epoch, now=now, most=left)
                left -= max(count, _LEAST_PER_STEP)
                outcomes += added
                if step == "remove":
                    excess -= count
                if not finished:
                    return outcomes
        return outcomes

    def _steps(self, cohort: Cohort, now: float, *, excess: int, earlier_waits: bool) -> list[_Step]:
        """What is to be done with a cohort, in this order."""
        is_over = now >= cohort.end + self._join_seconds
        if cohort.state == "x":
            return ["remove"] if is_over else ["empty"] if cohort.items else []
        steps: list[_Step] = []
        if cohort.state == "c" or (cohort.is_open and not earlier_waits and self._is_complete(cohort, now)):
            steps.append("close")
        elif cohort.is_open and cohort.thin:
            steps.append("thin")
        # What can still be revised is bounded, too: the oldest goes.
        is_closed = cohort.state == "d" or "close" in steps
        if is_closed and (is_over or (cohort.state == "d" and excess > 0)):
            steps.append("remove")
        return steps

    def _is_complete(self, cohort: Cohort, now: float) -> bool:
        """Whether its outcomes may enter the stream; for an hour more records of its time may come."""
        if now < cohort.end + HOUR_SECONDS:
            return False
        if now >= cohort.end + self._wait_seconds:
            return True
        enough = self._rule.complete_share * cohort.items
        return self._rule.items == "census" and not cohort.thin and cohort.labels >= enough

    def _run(
        self, cohort: Cohort, step: _Step, *, epoch: int, now: float, most: int
    ) -> tuple[int, int, bool]:
        """Take a step; how many items were looked at, outcomes added, and whether the step is done."""
        keys, looked_at, outcomes = self._keys, 0, 0
        names = [
            keys.cohorts,
            keys.waiting,
            keys.outcomes,
            keys.cohort(cohort.hour),
            keys.closed(cohort.hour),
        ]
        # Items of a random sample that have no label are mostly not in that sample.
        absent = LabelFact("", now, "", "", ABSENT)
        label = b"" if self._rule.items == "sampled" else encode_packed(absent)
        arguments = [cohort.hour, step, _DIGESTS_PER_STEP, self._outcome_limit, label]
        while looked_at < most:
            count, added = self._run_fenced("advance_cohort", names, [epoch, self._join_items, *arguments])
            looked_at += count
            outcomes += added
            if count < _DIGESTS_PER_STEP:
                return looked_at, outcomes, True
        return looked_at, outcomes, False
