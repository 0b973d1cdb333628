"""What evidence on error rates starts from, once its first labels are trimmed from the stream (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.config.assessments import ErrorRateSettings
from service.domain.arrays import Floats, Indices
from service.domain.assessments import RateName
from service.domain.request_order import NO_PLACE
from service.monitoring.evidence_base import Checkpoint
from service.statistics.rates.label_evidence import Capital
from service.store.checkpoints import RateCapital, RateState

_NUMBER = "<f8"


@dataclass(frozen=True)
class RateBase:
    """What the evidence of one assessment starts from: a state, or nothing.

    Labels of requests up to `position` are in the state, or do not count.
    """

    key: str  # of the grouping by strata, and the positive class
    position: int = 0
    state: RateState | None = None

    @classmethod
    def of(cls, base: Checkpoint, name: str, settings: ErrorRateSettings) -> RateBase:
        """That of an assessment, by its name."""
        key = f"{base.keys[settings.asked_grouping]}\0{settings.positive_class}"
        state = base.rate_states.get(name)
        return cls(key, base.position, state if state is not None and state.key == key else None)

    def capital(self, rate: RateName, groups: Sequence[str], limits: Floats) -> Capital | None:
        """Of labels up to the position; None if they were tested against other limits [T].

        Groups that the state does not know have none.
        """
        kept = None if self.state is None else self.state.rates.get(rate)
        if self.state is None or kept is None or kept.limits != _packed(limits):
            return None
        known = {group: row for row, group in enumerate(self.state.groups)}
        rows = np.array([known.get(group, len(known)) for group in groups], np.intp)
        found = []
        for side in (kept.above, kept.below):
            numbers = np.frombuffer(side, _NUMBER).reshape(len(known), len(limits), -1)
            none = np.zeros((1, *numbers.shape[1:]))
            found.append(np.concatenate([numbers, none])[rows])
        return Capital(*found)

    def arrivals(self, firsts: Mapping[str, int], *, until: int = NO_PLACE) -> list[str]:
        """Groups in the order of their first requests, whose places are given; those of the state come first.

        Groups whose first request has the place `until`, or a later one, are left out.
        """
        known = [] if self.state is None else self.state.arrivals
        new = firsts.keys() - set(known)
        return [*known, *(of for at, of in sorted((firsts[group], group) for group in new) if at < until)]

    def continued(
        self,
        name: str,
        groups: Sequence[str],
        arrivals: Sequence[str],
        counted: Mapping[RateName, tuple[Floats, Capital]],
    ) -> RateState:
        """The state of an assessment with the labels that were counted since.

        Of every rate, `counted` has the limits [T] and the capital of the groups. Groups of the state that
        have no traffic now stay as they were.
        """
        present = set(groups)
        absent = [] if self.state is None else [group for group in self.state.groups if group not in present]
        every, rates = [*groups, *absent], {}
        for rate, (limits, capital) in counted.items():
            base = self.capital(rate, every, limits)
            rest = np.zeros((len(absent), *capital.above.shape[1:]))
            found = Capital(np.concatenate([capital.above, rest]), np.concatenate([capital.below, rest]))
            found = found if base is None else found + base
            rates[rate] = RateCapital(_packed(limits), _packed(found.above), _packed(found.below))
        return RateState(name, self.key, list(arrivals), every, rates)


def arrival_numbers(groups: Sequence[str], arrivals: Sequence[str]) -> Indices:
    """Numbers of groups by the order of their arrival, from 1; those without a request come last [G]."""
    known = set(arrivals)
    order = [*arrivals, *(group for group in groups if group not in known)]
    numbers = {group: number for number, group in enumerate(order, start=1)}
    return np.array([numbers[group] for group in groups], np.intp)


def _packed(numbers: Floats) -> bytes:
    return numbers.astype(_NUMBER).tobytes()
