"""Two processes of a role share the work; one is killed, and the other takes its part over, in time."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from apache_kafka import ApacheKafka
from fleet import Fleet, Load, end
from harness import Deploy, Deployment, truth, wait_for
from stored import expected_cells, stored_cells

from service.app.wiring import label_store
from service.store.outcome_entries import BEGINNING

PARTITIONS = 4
TICK_SECONDS = 0.5
LEASE_SECONDS = 3.0
MACHINE_SECONDS = 20.0
"""What a machine that has much else to do may add; far less than the minutes after which clients give up."""

ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 100000}, lease_seconds: 300}, "
    "classes: {task: estimation, grouping: class, budget: {labels: 100000}, lease_seconds: 300}}"
)

Offsets = Mapping[int, int]


@dataclass
class Scene:
    """A fleet at work.

    Attributes:
        session_seconds: `kafka.session_timeout_seconds` of all consumers.
        flush_seconds: `kafka.flush_seconds` of all consumers.
    """

    deployment: Deployment
    fleet: Fleet
    load: Load
    session_seconds: float
    flush_seconds: float

    def owned(self, name: str) -> set[int]:
        """Partitions of which a consumer tells."""
        kind = name.partition("-")[0]
        pattern = rf'credence_consumer_lag_records{{partition="(\d+)",topic="{kind}"}}'
        return {
            int(partition) for partition in re.findall(pattern, self.fleet.members[name].get("/metrics")[1])
        }

    def stored(self, kind: str) -> Offsets:
        """The stored offset of every partition, of predictions or of labels."""
        if kind == "predictions":
            return self.deployment.facts().traffic().offsets
        store = label_store(self.deployment.settings, self.deployment.connection, "sorter")
        return {partition: store.progress(partition)[0] or 0 for partition in range(PARTITIONS)}

    def shares(self, kind: str) -> bool:
        """Whether two consumers have half of the partitions each."""
        first, second = (self.owned(f"{kind}-{number}") for number in (1, 2))
        return len(first) == len(second) == PARTITIONS / 2 and not first & second

    def issued(self) -> int:
        """Requests issued ever."""
        tallies = self.deployment.facts().requests().tallies
        return sum(count for (event, _), count in tallies.items() if event == "issued")

    def leads(self, name: str) -> bool:
        """Whether a scheduler says that it leads."""
        return self.fleet.members[name].metric("credence_leader") == 1

    def kill(self, name: str) -> float:
        """SIGKILL; when that was, by the monotonic clock."""
        self.fleet.members[name].kill()
        return time.monotonic()


@pytest.fixture(scope="module")
def scene(module_deploy: Deploy, apache_kafka: ApacheKafka) -> Iterator[Scene]:
    deployment = module_deploy(
        broker=apache_kafka.bootstrap_servers,
        partitions=PARTITIONS,
        tick=TICK_SECONDS,
        assessments=ASSESSMENTS,
    )
    deployment.configure("schedule", lease_seconds=LEASE_SECONDS)
    load = Load(deployment, predictions_per_second=200)
    kafka = deployment.settings.kafka
    with Fleet(deployment) as fleet, load.flowing():
        for number in (1, 2):
            for kind in ("predictions", "labels"):
                fleet.add(f"{kind}-{number}", "consume", kind)
            fleet.add(f"schedule-{number}", "schedule")
        yield Scene(deployment, fleet, load, kafka.session_timeout_seconds, kafka.flush_seconds)


@pytest.fixture
def running_scene(scene: Scene) -> Scene:
    """Everything runs, and work is shared."""
    for name, process in scene.fleet.members.items():
        if process.popen.poll() is not None:
            scene.fleet.revive(name)
    scene.fleet.wait_until_ready()
    for kind in ("predictions", "labels"):
        wait_for(lambda kind=kind: scene.shares(kind), seconds=60, what=f"two partitions of {kind} each")
    wait_for(
        lambda: scene.leads("schedule-1") != scene.leads("schedule-2"), seconds=30, what="one scheduler leads"
    )
    return scene


def check_duration(what: str, seconds: float, bound: float) -> None:
    sys.stdout.write(f"{what}: {seconds:.1f} s, at most {bound:g} s\n")
    assert seconds <= bound, what


@pytest.mark.parametrize("victim", ["predictions-1", "predictions-2", "labels-1", "labels-2"])
def test_a_consumer_takes_the_partitions_of_a_killed_one_over(running_scene: Scene, victim: str) -> None:
    kind = victim.partition("-")[0]
    orphaned = running_scene.owned(victim)
    assert len(orphaned) == PARTITIONS / 2
    killed = running_scene.kill(victim)
    left = running_scene.stored(kind)

    def moved_on() -> bool:
        stored = running_scene.stored(kind)
        return all(stored[partition] > left[partition] for partition in orphaned)

    wait_for(moved_on, seconds=60, what="the partitions move on")
    # The session ends that long after the last heartbeat. The one who is left hears of it with its next one
    # (there are three in a session), joins anew, and stores what it reads with its next flush.
    bound = running_scene.session_seconds * 4 / 3 + running_scene.flush_seconds + MACHINE_SECONDS
    check_duration(f"{victim} killed, its partitions move on", time.monotonic() - killed, bound)


def test_a_scheduler_leads_in_the_place_of_a_killed_one(running_scene: Scene) -> None:
    leader, follower = sorted(("schedule-1", "schedule-2"), key=running_scene.leads, reverse=True)
    killed = running_scene.kill(leader)
    issued = running_scene.issued()
    wait_for(lambda: running_scene.issued() > issued, seconds=60, what="more requests")
    # The lease ends by itself; the other one looks at every tick, and asks in the same round.
    bound = LEASE_SECONDS + TICK_SECONDS + MACHINE_SECONDS
    check_duration(f"{leader} killed, which led; requests are issued again", time.monotonic() - killed, bound)
    assert running_scene.leads(follower)


def test_a_leader_asks_on_when_the_other_scheduler_is_killed(running_scene: Scene) -> None:
    leader, follower = sorted(("schedule-1", "schedule-2"), key=running_scene.leads, reverse=True)
    killed = running_scene.kill(follower)
    issued = running_scene.issued()
    wait_for(lambda: running_scene.issued() > issued, seconds=60, what="more requests")
    bound = 2 * TICK_SECONDS + MACHINE_SECONDS
    check_duration(
        f"{follower} killed, which did not lead; requests are issued", time.monotonic() - killed, bound
    )
    # A round that outlasts the lease has it give up the lead for a moment, to nobody.
    wait_for(lambda: running_scene.leads(leader), seconds=60, what=f"{leader} leads")


def test_after_all_kills_every_fact_is_what_was_sent(running_scene: Scene) -> None:
    deployment, load = running_scene.deployment, running_scene.load
    for name in ("schedule-1", "schedule-2"):
        end(running_scene.fleet.members[name])

    def all_answered() -> bool:
        requests = deployment.facts().requests()
        return not requests.open and not requests.outbox_size

    load.drain(all_answered, seconds=60, what="all answers")
    wait_for(lambda: deployment.predictions_stored() >= load.sent, seconds=60, what="all predictions")
    assert stored_cells(deployment) == expected_cells(deployment, range(load.sent))
    page = deployment.facts().outcomes(BEGINNING)
    assert page is not None
    answered = [(one.fact.request_id, one.fact.item_id, one.label.true_class) for one in page.labelled]
    assert len(set(answered)) == len(answered) == running_scene.issued()
    # A leader that is killed may have sent what it could not note any more: it is sent again, as the same.
    assert set(answered) == {
        (request.request_id, request.item_id, truth(int(request.item_id.removeprefix("item-"))))
        for request in load.labeller.seen
    }
