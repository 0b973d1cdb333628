"""The kinds of faults: how each strikes a deployment, and how it ends."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from layout import CONSUMERS, RESIDENTS, SCHEDULERS, VISITOR
from redis_backups import append_only_of, copy, remove, write_append_only_file
from stand import Stand
from trial import Fault, Relief
from wires import WireState

Part = Literal["process", "redis", "broker", "redis wire", "kafka wire", "clock", "visitor", "registry"]

WIRE_FAULTS: tuple[WireState, ...] = ("cut", "silent", "slow", "half_closed", "loses_replies")
_DISK_BALLAST = "ballast"
_AHEAD_SECONDS = 1_800
"""Less than brokers let a record be ahead of them: test_found_by_trials.py tells of more."""

_BEHIND_SECONDS = 240
"""Less than a record may be ahead of a consumer's clock; beyond, it would count as of that clock's time."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: as it stands in tables.
        part: what it is a fault of; one part of one target has one fault at a time.
        targets: what it may strike.
        seconds: shortest and longest time that it lasts.
        strike: makes it happen to a target; gives what ends it.
        forgetful: whether Redis forgets something by it.
        weight: how often a seed picks it, beside the others.
    """

    name: str
    part: Part
    targets: Sequence[str]
    seconds: tuple[float, float]
    strike: Callable[[Stand, str], Relief]
    forgetful: bool = False
    weight: float = 1.0

    def fault(self, *, target: str, at_seconds: float, for_seconds: float) -> Fault:
        """A fault of this kind."""
        return Fault(self.name, target, at_seconds, for_seconds, lambda stand: self.strike(stand, target))


def _kill(stand: Stand, target: str) -> Relief:
    member = stand.members[target]
    member.kill()
    return member.start


def _pause(stand: Stand, target: str) -> Relief:
    member = stand.members[target]
    member.signal(signal.SIGSTOP)
    return lambda: member.signal(signal.SIGCONT)


def _visit(stand: Stand, target: str) -> Relief:
    member = stand.members[target]
    member.start()
    return member.stop


def _redis_wire(state: WireState) -> Callable[[Stand, str], Relief]:
    def strike(stand: Stand, target: str) -> Relief:
        wire = stand.members[target].redis_wire
        wire.become(state)
        return lambda: wire.become("whole")

    return strike


def _kafka_wire(state: WireState) -> Callable[[Stand, str], Relief]:
    def strike(stand: Stand, target: str) -> Relief:
        client = stand.members[target].client
        stand.kafka.become(client, state)
        return lambda: stand.kafka.become(client, "whole")

    return strike


def _kill_redis(stand: Stand, _: str) -> Relief:
    stand.redis.process.kill()
    stand.redis.process.wait()
    return stand.restart_redis


def _pause_redis(stand: Stand, _: str) -> Relief:
    stand.redis.process.send_signal(signal.SIGSTOP)
    return lambda: stand.redis.process.send_signal(signal.SIGCONT)


def _restore_append_only_file(stand: Stand, _: str) -> Relief:
    backup = stand.folder / "backup"
    copy(append_only_of(stand.redis_folder), backup)

    def put_back() -> None:
        stand.redis.stop()
        old = append_only_of(stand.redis_folder)
        remove(old)
        copy(backup, old)
        stand.restart_redis()

    return put_back


def _restore_snapshot(stand: Stand, _: str) -> Relief:
    """As an operator does it: Redis reads the old file while it keeps no append-only one, then begins one."""
    backup = stand.folder / "backup.rdb"
    stand.redis_client.save()
    (stand.redis_folder / "dump.rdb").rename(backup)

    def put_back() -> None:
        stand.redis.stop()
        remove(append_only_of(stand.redis_folder))
        backup.rename(stand.redis_folder / "dump.rdb")
        write_append_only_file(stand.redis_folder)
        stand.restart_redis()

    return put_back


def _empty_redis(stand: Stand, _: str) -> Relief:
    stand.redis_client.flushall()
    return lambda: None


def _fill_memory(stand: Stand, _: str) -> Relief:
    stand.redis_client.config_set("maxmemory-policy", "noeviction")
    stand.redis_client.config_set("maxmemory", "1mb")
    return lambda: stand.redis_client.config_set("maxmemory", "0")


def _fill_disk(stand: Stand, _: str) -> Relief:
    """Fill the small file system that Redis writes to, down to the last byte."""
    ballast = stand.redis_folder / _DISK_BALLAST
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    return ballast.unlink


def _kill_broker(stand: Stand, target: str) -> Relief:
    broker = stand.kafka.brokers[int(target.removeprefix("broker-")) - 1]
    broker.kill()
    return broker.start


def _pause_broker(stand: Stand, target: str) -> Relief:
    broker = stand.kafka.brokers[int(target.removeprefix("broker-")) - 1]
    broker.pause()
    return broker.resume


def _advance_clock(stand: Stand, target: str) -> Relief:
    _move_clock(stand, target, _AHEAD_SECONDS)
    return lambda: _move_clock(stand, target, 0)


def _set_clock_back(stand: Stand, target: str) -> Relief:
    _move_clock(stand, target, -_BEHIND_SECONDS)
    return lambda: None


def _move_clock(stand: Stand, target: str, seconds: float) -> None:
    for name in RESIDENTS if target == "all" else (target,):
        stand.members[name].move_clock(seconds)


def _stop_registry(stand: Stand, _: str) -> Relief:
    stand.registry.stop()
    return stand.registry.start


def _pause_registry(stand: Stand, _: str) -> Relief:
    stand.registry.pause()
    return stand.registry.resume


def _told(state: WireState) -> str:
    return state.replace("_", " ")


_REDIS = ("redis",)
_BROKER = ("broker-1",)

_REGISTRY = ("registry",)
_CLOCKS = (*RESIDENTS, "all")
_AGE = (0.5, 2.0)
"""Of a backup, in seconds."""

_CUT = (0.3, 2.0)

_ALL: tuple[Kind, ...] = (
    Kind("consumer killed", "process", CONSUMERS, (0.0, 1.5), _kill, weight=2),
    Kind("consumer stopped past its session", "process", CONSUMERS, (2.4, 3.2), _pause, weight=2),
    Kind("scheduler killed", "process", SCHEDULERS, (0.0, 1.5), _kill),
    Kind("scheduler stopped past its lease", "process", SCHEDULERS, (1.2, 2.5), _pause, weight=2),
    Kind("consumer joins and leaves", "visitor", (VISITOR,), (0.8, 2.0), _visit),
    Kind("Redis killed", "redis", _REDIS, (0.0, 1.0), _kill_redis),
    Kind("Redis stopped past its clients' patience", "redis", _REDIS, (1.2, 2.5), _pause_redis),
    Kind("Redis out of memory", "redis", _REDIS, (0.5, 1.5), _fill_memory),
    Kind("Redis's disk full", "redis", _REDIS, (1.2, 2.2), _fill_disk),
    Kind("Redis set back by an old AOF", "redis", _REDIS, _AGE, _restore_append_only_file, forgetful=True),
    Kind("Redis set back by an old RDB", "redis", _REDIS, _AGE, _restore_snapshot, forgetful=True),
    Kind("Redis emptied", "redis", _REDIS, (0.0, 0.0), _empty_redis, forgetful=True),
    Kind("broker killed", "broker", _BROKER, (0.0, 0.5), _kill_broker, weight=0.5),
    Kind("broker stopped", "broker", _BROKER, (1.0, 2.5), _pause_broker, weight=0.5),
    *(
        Kind(f"wire to Redis {_told(state)}", "redis wire", RESIDENTS, _CUT, _redis_wire(state))
        for state in WIRE_FAULTS
    ),
    *(
        Kind(f"wire to Kafka {_told(state)}", "kafka wire", RESIDENTS, _CUT, _kafka_wire(state))
        for state in WIRE_FAULTS
    ),
    Kind("schema registry stopped", "registry", _REGISTRY, (0.5, 2.0), _stop_registry),
    Kind("schema registry silent", "registry", _REGISTRY, (0.8, 2.0), _pause_registry),
    Kind("clock half an hour ahead, then right again", "clock", _CLOCKS, (1.5, 2.5), _advance_clock),
    Kind("clock four minutes behind, for good", "clock", _CLOCKS, (0.0, 0.0), _set_clock_back),
)

KINDS = {kind.name: kind for kind in _ALL}
"""All kinds by name."""


def schedule_of(seed: int, *, seconds: float, brokers: int = 1) -> list[Fault]:
    """The faults of one seed: two to four, of different kinds, on different parts.

    Args:
        seed: decides everything.
        seconds: time in which they begin.
        brokers: how many there are to strike.
    """
    rng = random.Random(f"faults/{seed}")
    faults: list[Fault] = []
    taken: set[tuple[str, str]] = set()
    kinds, wanted = list(KINDS.values()), rng.randint(2, 4)
    while len(faults) < wanted:
        kind = kinds.pop(rng.choices(range(len(kinds)), [k.weight for k in kinds])[0])
        targets = [f"broker-{n}" for n in range(1, brokers + 1)] if kind.part == "broker" else kind.targets
        target = rng.choice(list(targets))
        place = (kind.part, "all" if kind.part == "clock" else target)
        if place in taken:
            continue
        taken.add(place)
        at, lasting = rng.uniform(0.0, seconds), rng.uniform(*kind.seconds)
        faults.append(kind.fault(target=target, at_seconds=at, for_seconds=lasting))
    return faults
