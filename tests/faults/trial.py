"""One trial: a workload runs, faults strike, everything comes to rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import redis
from harness import wait_for
from layout import CONSUMERS, LEASE_SECONDS, MODELS, PARTITIONS, RESIDENTS, SCHEDULERS, assessments
from sender import Sender
from stand import Stand
from workload import Workload

from service.domain.errors import Unavailable
from service.store.keys import lease_key

Relief = Callable[[], object]

REST_SECONDS = 90.0
"""Time to come to rest in, once all faults are over."""


@dataclass
class Fault:
    """One fault of a trial.

    Attributes:
        kind: of `kinds.KINDS`.
        target: what it strikes: a process, or a server.
        at_seconds: when, from the time that everything runs.
        for_seconds: how long.
        strike: makes it happen; gives what ends it.
        alone: whether no other fault was there between its strike and the recovery from it.
        recovery_seconds: from its end until what had been sent by then was stored and a leader led.
    """

    kind: str
    target: str
    at_seconds: float
    for_seconds: float
    strike: Callable[[Stand], Relief] = field(repr=False)
    alone: bool = True
    recovery_seconds: float | None = None

    def __str__(self) -> str:
        until = self.at_seconds + self.for_seconds
        return f"{self.at_seconds:5.2f} s to {until:5.2f} s: {self.kind} ({self.target})"


@dataclass
class _Recovery:
    fault: Fault
    relieved_at: float
    ends: dict[tuple[str, int], int]


class Trial:
    """Runs one deployment through a schedule of faults, and on until it rests.

    Attributes:
        sender: what was sent.
        overdrawn: budgets and limits that were seen exceeded.
    """

    def __init__(self, stand: Stand, workload: Workload, faults: Sequence[Fault], *, seconds: float) -> None:
        self.stand = stand
        self.sender = Sender(stand, workload)
        self.overdrawn: list[str] = []
        self._faults = sorted(faults, key=lambda fault: fault.at_seconds)
        self._seconds = seconds
        self._recovering: list[_Recovery] = []
        self._keys = {model: stand.site().keys(model) for model in MODELS}

    def run(self, *, until: Callable[[Stand], bool] = lambda _: True) -> None:
        """From the start of all processes until nothing moves any more and all have stopped.

        Args:
            until: what must have come before predictions end, besides the faults and the seconds.
        """
        for name in RESIDENTS:
            self.stand.members[name].start()
        self.sender.start()
        try:
            wait_for(self._has_begun, seconds=60, what="first facts and label requests")
            self._strike_all()
            wait_for(self._watching(lambda: until(self.stand)), seconds=60, what="what the trial is for")
            self.sender.stop_predicting()
            self._come_to_rest()
        finally:
            self.sender.stop()

    def _has_begun(self) -> bool:
        self._check_alive()
        stored = self._stored()
        if stored is None or {request.model for request in self.sender.requests} != MODELS.keys():
            return False
        return all(stored[("predictions", p)] for p in range(PARTITIONS["predictions"]))

    def _strike_all(self) -> None:
        began = time.monotonic()
        waiting = list(self._faults)
        active: list[tuple[float, Fault, Relief]] = []
        while waiting or active or time.monotonic() - began < self._seconds:
            passed = time.monotonic() - began
            while waiting and waiting[0].at_seconds <= passed:
                fault = waiting.pop(0)
                self._note_company(fault, [other for _, other, _ in active])
                active.append((time.monotonic() + fault.for_seconds, fault, fault.strike(self.stand)))
            for entry in [entry for entry in active if entry[0] <= time.monotonic()]:
                active.remove(entry)
                entry[2]()
                self._recovering.append(_Recovery(entry[1], time.monotonic(), self.sender.ends()))
            self._watch()
            time.sleep(0.03)

    def _note_company(self, fault: Fault, active: Sequence[Fault]) -> None:
        others = [*active, *(recovery.fault for recovery in self._recovering)]
        for other in others:
            other.alone = False
        fault.alone = not others

    def _watch(self) -> None:
        self._check_alive()
        stored = self._stored()
        if stored is None:
            return
        self._watch_limits()
        for recovery in list(self._recovering):
            if self._led_since(recovery.relieved_at) and all(
                stored.get(place, 0) >= end for place, end in recovery.ends.items()
            ):
                recovery.fault.recovery_seconds = time.monotonic() - recovery.relieved_at
                self._recovering.remove(recovery)

    def _watching(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """The condition; whoever asks for it watches, too."""

        def watched() -> bool:
            self._watch()
            return condition()

        return watched

    def _check_alive(self) -> None:
        for member in self.stand.members.values():
            member.check_alive()

    def _stored(self) -> dict[tuple[str, int], int] | None:
        """By topic and partition, the offset up to which everything is stored; None while Redis is away."""
        pipeline = self.stand.redis_client.pipeline(transaction=False)
        places = [(kind, p) for kind in ("predictions", "labels") for p in range(PARTITIONS[kind])]
        for kind, partition in places:
            for keys in self._keys.values():
                key = keys.shard(partition) if kind == "predictions" else keys.labels(partition)
                pipeline.hget(key, "next_offset")
        try:
            offsets = [int(offset or 0) for offset in pipeline.execute()]
        except redis.RedisError:
            return None
        of_models = zip(*[iter(offsets)] * len(self._keys), strict=True)
        return {place: min(each) for place, each in zip(places, of_models, strict=True)}

    def _led_since(self, moment: float) -> bool:
        """Whether a leader has renewed its lease since then."""
        try:
            left_ms = self.stand.redis_client.pttl(lease_key(self.stand.name))
        except redis.RedisError:
            return False
        return left_ms > 0 and time.monotonic() - (LEASE_SECONDS - left_ms / 1000) > moment

    def _watch_limits(self) -> None:
        try:
            all_facts = {model: self.stand.site().reader(model).requests() for model in MODELS}
        except Unavailable:
            return
        for model, name, settings in assessments():
            facts = all_facts[model]
            used = sum(count for field, count in facts.budget.items() if field.startswith(f"{name}|"))
            in_flight = sum(request.assessment == name for request in facts.open.values())
            if used > settings["budget"]["labels"]:
                self.overdrawn.append(f"{model}: {name} used {used} labels")
            # A leader's limit is that of its snapshot: another leader, or an older Redis, may come between.
            if in_flight > 2 * settings["max_in_flight"]:
                self.overdrawn.append(f"{model}: {name} had {in_flight} requests in flight")

    def _come_to_rest(self) -> None:
        """Let schedulers stop once all is asked and sent, and then the consumers once all is taken in."""
        deadline = time.monotonic() + REST_SECONDS

        def within(condition: Callable[[], bool], what: str) -> None:
            wait_for(self._watching(condition), seconds=deadline - time.monotonic(), what=what)

        within(lambda: not self._recovering, f"recovery from {[str(r.fault) for r in self._recovering]}")
        within(self._outbox_is_empty, "all label requests sent")
        self.stand.stop(*SCHEDULERS)
        while not self._outbox_is_empty():  # the last round was given up, and left it to the next scheduler
            self.stand.members[SCHEDULERS[0]].start()
            within(self._outbox_is_empty, "what a scheduler left behind sent")
            self.stand.stop(*SCHEDULERS)
        requested = self.stand.ends("label-requests")
        within(lambda: len(self.sender.requests) >= sum(requested.values()), "all requests seen")
        within(lambda: not self.sender.answers_waiting, "all answers given")
        self.sender.stop()
        within(self._all_is_stored, "everything taken in")
        self.stand.stop(*CONSUMERS)

    def _outbox_is_empty(self) -> bool:
        try:
            return not any(self.stand.redis_client.hlen(keys.outbox) for keys in self._keys.values())
        except redis.RedisError:
            return False

    def _all_is_stored(self) -> bool:
        stored = self._stored()
        return stored is not None and all(
            stored.get(place, 0) >= end for place, end in self.sender.ends().items()
        )
