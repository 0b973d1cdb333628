"""What vendors add to the rights of `permissions.py`: one claims its requests, one has Kafka alone."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from harness import wait_for
from label_studio_shapes import annotation, hook_body
from office import Caller, Told
from roles import Roles, limited_roles, redis_of_rights

from service.app.permissions import ROLES, KafkaRight, kafka_rights, redis_rules
from service.app.wiring import model_keys
from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis
from service.domain.label_signatures import sign
from service.domain.messages import LabelRequest
from service.store.facts import RequestFacts
from service.store.idempotency import MOST_RECORDS
from service.store.keys import idempotency_key
from service.store.outcome_entries import BEGINNING

TOKEN = "a-token-that-is-used-by-tests-alone"
KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
VENDORS = (
    f"{{acme: {{label_keys: [{KEYS['acme']}], "
    f"token_sha256: [{hashlib.sha256(TOKEN.encode()).hexdigest()}]}}, "
    f"bolt: {{label_keys: [{KEYS['bolt']}], topic: NAME.for-bolt}}}}"
)
ASSESSMENTS = (
    "{regions: {grouping: region, budget: {labels: 300}, max_in_flight: 30, lease_seconds: 3600,"
    " max_attempts: 100}}"
)
"""No time runs out by itself: of requests that wait, a vendor is given the one with the least time left."""


class Office:
    """The deployment with both vendors' people.

    Attributes:
        roles: the deployment's.
        acme: its tool.
    """

    def __init__(self, roles: Roles, stack: ExitStack) -> None:
        self.roles = roles
        self._deployment = roles.deployment
        port = free_port()
        self.acme = Caller(port, TOKEN)
        roles.start("predictions", stack, "consume", "predictions")
        roles.start("labels", stack, "consume", "labels")
        self._deployment.send_predictions(range(600))
        wait_for(lambda: self._deployment.predictions_stored() >= 600, seconds=60, what="the predictions")
        self._for_bolt = self._deployment.consumer("for-bolt")
        self._come: list[LabelRequest] = []
        roles.start("schedule", stack, "schedule")
        roles.start("serve", stack, "serve", CREDENCE_VENDOR_API__PORT=str(port))

    def logged(self, status: int, call: Callable[[], Told]) -> Told:
        """What a call is answered once it has this status; it is repeated until then."""
        seen: list[int] = []

        def tried() -> Told | None:
            logged = call()
            seen.append(logged.status)
            return logged if logged.status == status else None

        try:
            found: Told = wait_for(tried, seconds=60, what=f"status {status}")
        except AssertionError as error:
            raise AssertionError(f"{error}; but {sorted(set(seen))}") from error
        return found

    def claim(self) -> dict[str, Any]:
        """A request for acme, once there is one."""
        [claim] = wait_for(self.acme.claim, seconds=60, what="a request to claim")
        return dict(claim)

    def asked_of_bolt(self) -> LabelRequest:
        """The next request that came on bolt's topic and is still bolt's."""

        def still_bolts() -> LabelRequest | None:
            for records in self._for_bolt.poll(100).values():
                self._come += [LabelRequest.model_validate_json(record.value) for record in records]
            opened = self._deployment.facts().requests().open
            while self._come:
                request = self._come.pop(0)
                found = opened.get(request.request_id)
                if found is not None and found.attempt == request.attempt:
                    return request
            return None

        request: LabelRequest = wait_for(still_bolts, seconds=60, what="a request on bolt's topic")
        return request

    def ask_anew(self) -> None:
        """Have the time of all open requests be over, and wait until they are asked again."""
        settings, facts = self._deployment.settings, self._deployment.facts()
        keys = model_keys(settings, "sorter")
        before = facts.requests()
        over = dict.fromkeys(before.open, time.time() - 1)
        self._deployment.connection.client.zadd(keys.deadlines, over, xx=True)

        def reissued(requests: RequestFacts) -> int:
            return requests.tallies.get(("reissued", "regions"), 0)

        wait_for(
            lambda: reissued(facts.requests()) >= reissued(before) + len(over),
            seconds=60,
            what=f"{len(over)} requests asked again",
        )

    def say(self, request: LabelRequest, **fields: str) -> None:
        """Send a label of bolt."""
        said = {"request_id": request.request_id, "model": request.model, "item_id": request.item_id}
        value = json.dumps(said | {"time": datetime.now(UTC).isoformat()} | fields).encode()
        topic = self._deployment.settings.kafka.topics.labels
        headers = sign(KEYS["bolt"].encode(), "bolt", value)
        self._deployment.producer.send(topic, value=value, key=request.item_id.encode(), headers=headers)
        self._deployment.producer.flush()

    def true_classes(self, request_id: str) -> list[str]:
        """What is known of a request, entry by entry."""
        page = self._deployment.facts().outcomes(BEGINNING)
        assert page is not None
        return [each.label.true_class for each in page.labelled if each.fact.request_id == request_id]

    def await_outcomes(self, request_id: str, *classes: str) -> None:
        wait_for(lambda: self.true_classes(request_id) == [*classes], seconds=60, what=f"{classes}")


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with redis_of_rights() as server:
        yield server


@pytest.fixture(scope="module")
def office(server: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """All that vendors do, done once."""
    folder: Path = tmp_path_factory.mktemp("rights")
    with (
        limited_roles(folder, server, assessments=ASSESSMENTS, vendors=VENDORS) as roles,
        ExitStack() as stack,
    ):
        office = Office(roles, stack)
        office.claim()
        office.ask_anew()
        _by_the_vendor_api(office)
        _by_label_studio(office)
        _over_kafka(office)
        yield office


def _by_the_vendor_api(office: Office) -> None:
    acme = office.acme
    office.logged(200, lambda: acme.get("/models"))
    held, released, skipped = office.claim(), office.claim(), office.claim()
    assert acme.of(held, "renew").status == 200
    assert acme.of(released, "release").status == 200
    assert acme.of(skipped, "skip").status == 202
    connection = office.roles.deployment.connection
    so_many_calls = [""] * MOST_RECORDS
    connection.client.rpush(idempotency_key(connection.prefix, "acme", "recent"), *so_many_calls)
    for _ in range(2):
        assert acme.post("/claims", {"most": 1}, Idempotency_Key="again").status == 200
    assert acme.get("/claims").status == 200
    assert acme.answer(held).status == 202
    office.await_outcomes(held["request_id"], "cat")
    assert acme.of(held, "correction", true_class="owl").status == 202
    office.await_outcomes(held["request_id"], "cat", "owl")
    assert acme.of(held, "retraction").status == 202
    assert acme.answer(released | {"claim_id": held["claim_id"]}).problem == "claim-lost"


def _by_label_studio(office: Office) -> None:
    def tasks() -> list[dict[str, Any]]:
        logged: list[dict[str, Any]] = office.acme.post("/models/sorter/label-studio/tasks", {"most": 1}).body
        return logged

    [exported] = wait_for(tasks, seconds=60, what="a task")
    task = {"id": 1, **exported}
    said: list[str] = []

    def hook(action: str, **fields: Any) -> None:
        logged = office.acme.post("/models/sorter/label-studio/webhook", hook_body(action, **fields))
        assert logged.status == 200, logged.body
        office.await_outcomes(task["data"]["request_id"], *said)

    # Two people look at it; what the second one says takes the first one's place.
    for number, true_class in enumerate(("dog", "owl"), 1):
        said.append(true_class)
        later = {"task": 1, "updated_at": f"2099-01-01T00:00:0{number}Z"}
        hook("ANNOTATION_CREATED", annotation=annotation(number, true_class, **later), task=task)
    said.append("")
    hook("ANNOTATIONS_DELETED", annotations=[{"id": 2}])


def _over_kafka(office: Office) -> None:
    request = office.asked_of_bolt()
    office.say(request, true_class="cat")
    office.await_outcomes(request.request_id, "cat")
    office.say(request, kind="correction", true_class="dog")
    office.await_outcomes(request.request_id, "cat", "dog")


def test_both_vendors_are_asked_and_answer(office: Office) -> None:
    request = office.asked_of_bolt()
    assert request.vendor == "bolt"
    office.say(request, true_class="owl")
    office.await_outcomes(request.request_id, "owl")
    claim = office.claim()
    assert claim["request"]["vendor"] == "acme"
    assert office.acme.answer(claim).status == 202
    office.await_outcomes(claim["request_id"], "cat")


def test_an_answer_is_refused_while_serve_may_not_write_labels(office: Office) -> None:
    roles = office.roles
    [right] = kafka_rights(roles.deployment.settings, "serve")
    assert right == KafkaRight("topic", roles.deployment.settings.kafka.topics.labels, "Write")
    roles.take("serve", right)
    claim = office.claim()
    assert office.logged(503, lambda: office.acme.answer(claim)).problem == "unavailable"
    assert "WRITE on those that are written" in roles.log("serve")
    roles.grant("serve", right)
    office.logged(202, lambda: office.acme.answer(claim))
    office.await_outcomes(claim["request_id"], "cat")


def test_requests_wait_while_schedule_may_not_write_a_vendors_topic(office: Office) -> None:
    roles = office.roles
    right = KafkaRight("topic", f"{roles.deployment.name}.for-bolt", "Write")
    assert right in kafka_rights(roles.deployment.settings, "schedule")
    told_before = roles.log("schedule").count("WRITE on those that are written")
    roles.take("schedule", right)
    office.ask_anew()
    wait_for(
        lambda: roles.log("schedule").count("WRITE on those that are written") > told_before,
        seconds=60,
        what="the report",
    )
    roles.grant("schedule", right)
    wait_for(roles.processes["schedule"].ready, seconds=90, what="readiness")
    assert office.asked_of_bolt().vendor == "bolt"


def test_vendors_add_no_other_right_in_kafka(office: Office) -> None:
    """Each of these was taken away above, or lacked while the topics were made."""
    settings = office.roles.deployment.settings
    without = settings.model_copy(update={"vendors": {}})
    added = {role: set(kafka_rights(settings, role)) - set(kafka_rights(without, role)) for role in ROLES}
    topic = f"{office.roles.deployment.name}.for-bolt"
    assert {role: rights for role, rights in added.items() if rights} == {
        "serve": {KafkaRight("topic", settings.kafka.topics.labels, "Write")},
        "schedule": {KafkaRight("topic", topic, "Write")},
        "topics": {KafkaRight("topic", topic, "Create")},
    }


@pytest.mark.parametrize("role", ["predictions", "labels", "schedule", "serve"])
def test_the_redis_rights_that_vendors_add_are_what_a_role_does_and_no_more(
    office: Office, role: str
) -> None:
    roles = office.roles
    settings = roles.deployment.settings
    rules = redis_rules(settings, role)
    plain = redis_rules(settings.model_copy(update={"vendors": {}}), role)
    commands = roles.recorder.commands(role)
    missing = roles.recorder.refused(rules, commands)
    assert not missing, f"service/app/permissions.py lacks, for {role}: {[c[:4] for c in missing]}"
    added = [rule for rule in rules if rule not in plain]
    assert bool(added) == (role != "predictions")
    for rule in added:
        less = [each for each in rules if each != rule]
        assert roles.recorder.refused(less, commands), (
            f"service/app/permissions.py grants {role} {rule} in vain"
        )
        if rule.startswith("~"):
            read = [f"%R{each}" if each == rule else each for each in rules]
            assert roles.recorder.refused(read, commands), f"{role} only reads {rule}"


def test_nothing_that_vendors_cause_was_refused_by_redis(office: Office, server: EmbeddedRedis) -> None:
    assert office.roles.deployment.facts().outcomes(BEGINNING) is not None
    with redis.Redis(port=server.port) as client:
        assert client.execute_command("ACL", "LOG") == []
