"""What evidence on error rates starts from, once its first labels are trimmed from the stream (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Floats, Indices
from service.monitoring.evidence_base import Checkpoint
from service.statistics.rates.evidence import BETS
from service.statistics.rates.label_evidence import Capital
from service.store.checkpoints import RateCapital, RateState

_NUMBER = "<f8"


@dataclass(frozen=True)
class RateBase:
    """What the evidence of one assessment starts from, by default from nothing.

    Labels of requests up to `position` are in the capitals, or do not count.
    """

    key: tuple[str, str]  # of the grouping by strata, and the positive class
    position: int = 0
    arrived: Sequence[str] = ()  # groups in the order of their first requests
    capitals: Mapping[str, RateCapital] = field(default_factory=dict)

    @classmethod
    def of(
        cls, base: Checkpoint, name: str, settings: ErrorRateSettings, *, samples_traffic: bool
    ) -> RateBase:
        """That of an assessment, by its name, or of the same one under another name.

        Where labels of all traffic come without a request it knows arrivals alone: an outcome may have
        counted as drawn for its stratum, and count as one of these later.
        """
        key = base.keys[settings.asked_grouping], settings.positive_class
        same = [state for state in base.rate_states if state.key == key]
        found = next((state for state in same if state.assessment == name), same[0] if same else None)
        arrived = [] if found is None else found.arrivals
        if not base.is_current or samples_traffic:
            return cls(key, 0, arrived)
        return cls(key, base.position, arrived, {} if found is None else found.capitals)

    def capital(self, of: str, groups: Sequence[str], limits: Floats) -> Capital:
        """Of labels up to the position, for some groups and limits [T]; none for those that it does not know.

        So a new limit takes no label from the others, and is tested by labels that come after the position.
        """
        found = Capital(*np.zeros((2, len(groups), len(limits), len(BETS))))
        if (kept := self.capitals.get(of)) is None:
            return found
        rows, known_rows = _matches(groups, kept.groups)
        known_limits = np.frombuffer(kept.limits, _NUMBER).tolist()
        columns, known_columns = _matches(limits.tolist(), known_limits)
        shape = len(kept.groups), len(known_limits), len(BETS)
        for side, into in ((kept.above, found.above), (kept.below, found.below)):
            known = np.frombuffer(side, _NUMBER).reshape(shape)
            into[np.ix_(rows, columns)] = known[np.ix_(known_rows, known_columns)]
        return found

    def continued(
        self,
        name: str,
        arrivals: Sequence[str],
        counted: Mapping[str, tuple[Sequence[str], Floats, Capital]] | None,
    ) -> RateState:
        """The state of an assessment with the labels that were counted since; None if there is no group.

        What is `counted` has groups, limits [T] and capital. Groups without traffic now stay as they were.
        Evidence that was not counted begins again: if it continued later, labels would be left out of it.
        """
        capitals = dict(self.capitals) if counted is None else {}
        for of, (groups, limits, capital) in (counted or {}).items():
            known = self.capitals.get(of)
            absent = [] if known is None else [group for group in known.groups if group not in set(groups)]
            every = [*groups, *absent]
            found = self.capital(of, every, limits)
            found.above[: len(groups)] += capital.above
            found.below[: len(groups)] += capital.below
            capitals[of] = RateCapital(every, *map(_packed, (limits, found.above, found.below)))
        return RateState(name, self.key, list(arrivals), capitals)


def arrival_numbers(groups: Sequence[str], arrivals: Sequence[str]) -> Indices:
    """Numbers of groups by the order of their arrival, from 1; those without a request come last [G]."""
    known = set(arrivals)
    order = [*arrivals, *(group for group in groups if group not in known)]
    numbers = {group: number for number, group in enumerate(order, start=1)}
    return np.array([numbers[group] for group in groups], np.intp)


def _matches(wanted: Sequence[object], known: Sequence[object]) -> tuple[Indices, Indices]:
    """Places in both of what both have [n]."""
    places = {each: place for place, each in enumerate(known)}
    pairs = [(place, places[each]) for place, each in enumerate(wanted) if each in places]
    found = np.array(pairs, np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _packed(numbers: Floats) -> bytes:
    return numbers.astype(_NUMBER).tobytes()
