"""Every role with the rights of `permissions.py` alone: the loop closes, and none could be left out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from harness import Deployment, Labeller, prediction, truth, wait_for
from roles import OUTCOMES, Roles, limited_roles, redis_of_rights

from service.app.permissions import ROLES, KafkaRight, kafka_rights, redis_rules
from service.app.wiring import model_keys
from service.demo.servers import EmbeddedRedis
from service.domain.messages import LabelRequest
from service.store.keys import LAYOUT_DIGITS, ModelKeys, identity_key
from service.store.outcome_entries import BEGINNING
from service.store.request_registry import request_id_of
from service.store.resets import ResetStore

# So many of a region are in flight that one of a class is sure to be among them, and shares its label.
ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 300}, lease_seconds: 8,"
    " max_attempts: 1, max_in_flight: 100},"
    " classes: {task: estimation, grouping: class, budget: {labels: 300}, lease_seconds: 8,"
    " max_attempts: 100, max_in_flight: 5},"
    " many: {task: estimation, grouping: class, budget: {labels: 1000}, lease_seconds: 8,"
    " max_attempts: 1, max_in_flight: 100}}"
)
MODEL = "labels_per_item: {{least: 2, most: 2, max_error: 0.05, gold: {{file: {gold}, share: 0.1}}}}\n"
GOLD = range(900_000, 900_050)
NOT_IN_REDIS = ("topics", "sample", "send-predictions")
BAD_PREDICTION, BAD_LABEL = b'{"model": "sorter"', b'{"request_id": 7'


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with redis_of_rights() as server:
        yield server


@pytest.fixture(scope="module")
def loop(server: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roles]:
    """The whole loop, through everything that a role ever does in Redis."""
    folder = tmp_path_factory.mktemp("rights")
    gold = folder / "gold.jsonl"
    items = [prediction(number) | {"true_class": truth(number)} for number in GOLD]
    gold.write_text("\n".join(map(json.dumps, items)))
    with (
        limited_roles(folder, server, assessments=ASSESSMENTS, model=MODEL.format(gold=gold)) as roles,
        redis.Redis(port=server.port) as admin,
        ExitStack() as stack,
    ):
        _close_the_loop(roles, stack, admin)
        yield roles


def _close_the_loop(loop: Roles, stack: ExitStack, admin: redis.Redis) -> None:
    deployment = loop.deployment
    loop.start("predictions", stack, "consume", "predictions")
    loop.start("labels", stack, "consume", "labels")
    deployment.send_predictions(range(2 * OUTCOMES))
    deployment.send("predictions", BAD_PREDICTION)
    deployment.send("labels", BAD_LABEL)
    deployment.producer.flush()
    wait_for(lambda: deployment.predictions_stored() >= 2 * OUTCOMES, seconds=60, what="the predictions")
    labeller = Labeller(deployment)
    labeller.answer()  # and so be there before the first request
    loop.start("schedule", stack, "schedule")
    loop.start("serve", stack, "serve")
    labeller.answer_until(OUTCOMES)
    evidence = model_keys(deployment.settings, "sorter").evidence

    def checkpointed() -> bool:
        # A request that is issued again and again, as nobody answers, would hold back the checkpoint.
        labeller.answer()
        return bool(admin.exists(evidence))

    wait_for(checkpointed, seconds=60, what="a checkpoint of the evidence")

    def counted(event: str) -> int:
        return _counted(deployment, event)

    _correct_and_retract(deployment, labeller)

    def skipped() -> bool:
        # One at a time, and no more once it has arrived: the others are left to lapse.
        for records in labeller._consumer.poll(100).values():
            if counted("skipped"):
                break
            request = json.loads(records[-1].value)
            label = {key: request[key] for key in ("request_id", "model", "item_id")} | {"kind": "skip"}
            deployment.send("labels", json.dumps(label).encode(), request["item_id"])
            deployment.producer.flush()
        return all(counted(event) for event in EVENTS) and shared()

    def shared() -> bool:
        # An item of an open request is drawn by another grouping, too.
        return any(command[0].upper() == b"EXISTS" for command in loop.recorder.commands("schedule"))

    try:
        wait_for(skipped, seconds=60, what="all that can become of a request")
    except AssertionError as error:
        raise AssertionError(f"missing: {[event for event in EVENTS if not counted(event)]}") from error
    _read_another_topic(loop, stack, admin)


EVENTS = ("answered", "corrected", "retracted", "skipped", "expired", "reissued")


def _counted(deployment: Deployment, event: str) -> int:
    return sum(n for (what, _), n in deployment.facts().requests().tallies.items() if what == event)


def _correct_and_retract(deployment: Deployment, labeller: Labeller) -> None:
    facts = deployment.facts()

    def two_answered() -> list[LabelRequest] | None:
        # Of those seen some may have expired before their answer came; the oldest outcomes are soon trimmed.
        page = facts.outcomes(BEGINNING)
        known = set() if page is None else {entry.fact.request_id for entry in page.labelled}
        answered = [request for request in labeller.seen if request.request_id in known]
        return answered[-2:] if len(answered) >= 2 else None

    def changed() -> bool:
        # An outcome that is trimmed before its correction comes is not corrected: another one is tried.
        first, second = wait_for(two_answered, seconds=60, what="two outcomes")
        was = truth(int(first.item_id.removeprefix("item-")))
        another = next(name for name in ("cat", "dog") if name != was)
        if not _counted(deployment, "corrected"):
            _change(deployment, first, {"kind": "correction", "true_class": another})
        if not _counted(deployment, "retracted"):
            _change(deployment, second, {"kind": "retraction"})
        deployment.producer.flush()
        return bool(_counted(deployment, "corrected") and _counted(deployment, "retracted"))

    wait_for(changed, seconds=60, what="a correction and a retraction")


def _change(deployment: Deployment, request: LabelRequest, fields: dict[str, str]) -> None:
    label = {"request_id": request.request_id, "model": "sorter", "item_id": request.item_id}
    label |= {"annotator": "person-1"} | fields
    deployment.send("labels", json.dumps(label).encode(), request.item_id)


def _read_another_topic(loop: Roles, stack: ExitStack, admin: redis.Redis) -> None:
    """Have both consumers find that their topic was made anew, and the scheduler give back its lease."""
    prefix = loop.deployment.settings.redis.prefix
    for role in ("predictions", "labels", "schedule"):
        loop.processes[role].popen.terminate()
        loop.processes[role].popen.wait(30)
    for key in admin.scan_iter(f"{prefix}:*"):
        if b":shard:" in key or b":labels:" in key:
            admin.hset(key, "topic_id", "of another topic")
    loop.start("predictions", stack, "consume", "predictions")
    loop.start("labels", stack, "consume", "labels")
    loop.start("schedule", stack, "schedule")
    _find_a_loss(loop, stack, admin)


def _find_a_loss(loop: Roles, stack: ExitStack, admin: redis.Redis) -> None:
    """Have both consumers find that Redis has lost their offsets, and an operator acknowledge it."""
    prefix = loop.deployment.settings.redis.prefix
    for role in ("predictions", "labels"):
        loop.processes[role].popen.terminate()
        loop.processes[role].popen.wait(30)
    admin.delete(identity_key(prefix))
    for key in admin.scan_iter(f"{prefix}:*"):
        if b":shard:" in key or b":labels:" in key:
            admin.hdel(key, "next_offset")
    loop.start("predictions", stack, "consume", "predictions")
    loop.start("labels", stack, "consume", "labels")
    topics = loop.deployment.settings.kafka.topics
    losses = ResetStore(loop.deployment.connection)

    def both_recorded() -> bool:
        found = losses.reset()
        return found is not None and set(found.records) == {topics.predictions, topics.labels}

    wait_for(both_recorded, seconds=60, what="the loss in both topics")
    found = losses.reset()
    assert found is not None
    assert found.labels_before, "Kafka keeps the number of labels"
    acknowledged = loop.command("reset", "reset", "acknowledge")
    assert acknowledged.stdout.startswith("acknowledged"), acknowledged.stderr


def test_the_loop_closes_for_every_role(loop: Roles) -> None:
    assert loop.processes["serve"].get("/api/v1/models")[0] == 200
    assert loop.deployment.facts().outcomes(BEGINNING) is not None
    assert loop.command("serve", "status").returncode == 0
    listed = loop.command("dead-letters", "dead-letters", "list")
    assert len(listed.stdout.splitlines()) >= 2, listed.stderr


def test_a_layout_that_is_not_used_is_removed(loop: Roles, server: EmbeddedRedis) -> None:
    settings = loop.deployment.settings
    used = model_keys(settings, "sorter")
    old = ModelKeys(used.prefix, used.model, "0" * LAYOUT_DIGITS)
    with redis.Redis(port=server.port) as admin:
        admin.rpush(old.drawn(0), "0:0")
        for key in (old.shard, old.traffic, old.sums, old.pool, old.items, old.marks):
            admin.hset(key(0), "next_offset", "1")
        admin.hset(old.drift, "pins", "[]")
        admin.sadd(old.partitions, 0)
    assert old.layout in loop.command("layouts", "layouts", "list").stdout
    removed = loop.command("layouts", "layouts", "remove", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert old.layout not in loop.command("layouts", "layouts", "list").stdout


def test_a_reference_is_set_shown_and_cleared(loop: Roles) -> None:
    for action in ("set", "show", "clear"):
        done = loop.command("reference", "reference", action, "sorter")
        assert (done.returncode, done.stdout[:7]) == (0, "sorter:"), done.stderr


@pytest.mark.parametrize("source", ["predictions", "labels"])
def test_dead_letters_are_sent_back_once_their_rights_are_there(loop: Roles, source: str) -> None:
    topic = getattr(loop.deployment.settings.kafka.topics, source)
    replay = ["dead-letters", "replay", "--source-topic", topic, "--limit", "1"]
    assert "1 of 1 would be" in loop.command("dead-letters", *replay, "--dry-run").stdout
    right = KafkaRight("topic", topic, "Write")
    assert right in kafka_rights(loop.deployment.settings, "dead-letters")
    loop.take("dead-letters", right)
    refused = loop.command("dead-letters", *replay, "--yes")
    assert refused.returncode == 1
    assert "WRITE on those that are written" in refused.stderr
    loop.grant("dead-letters", right)
    again = loop.command("dead-letters", *replay, "--yes", "--retry-unfinished")
    assert "1 replayed" in again.stdout, again.stderr


@pytest.mark.parametrize("kind", ["predictions", "labels"])
def test_a_file_is_sent_once_the_right_to_write_is_there(loop: Roles, kind: str, tmp_path: Path) -> None:
    settings, role = loop.deployment.settings, f"send-{kind}"
    of_request = {"request_id": request_id_of("sorter", "of-a-file"), "item_id": "of-a-file"}
    rows = {
        "predictions": [{"item_id": "of-a-file", "predicted_class": "cat", "score": 0.9}],
        "labels": [
            {"kind": "skip", **of_request},
            {"kind": "skip", "item_id": "requested-of-nobody"},
            {"kind": "skip", "request_id": "no-such-request"},
        ],
    }[kind]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    right = KafkaRight("topic", getattr(settings.kafka.topics, kind), "Write")
    assert right in kafka_rights(settings, role)
    loop.take(role, right)
    refused = loop.command(role, kind, "send", str(path))
    loop.grant(role, right)
    sent = loop.command(role, kind, "send", str(path))
    assert "WRITE on those that are written" in refused.stderr
    assert " 0 sent" in refused.stdout
    assert " 1 sent" in sent.stdout, sent.stderr


@pytest.mark.parametrize("command", [("init", "--topic"), ("check", "--sample")])
def test_a_topic_is_sampled_once_the_right_to_read_is_there(loop: Roles, command: tuple[str, str]) -> None:
    topic = loop.deployment.settings.kafka.topics.predictions
    right = KafkaRight("topic", topic, "Read")
    assert right in kafka_rights(loop.deployment.settings, "sample")

    def sampled() -> subprocess.CompletedProcess[str]:
        if command[0] == "check":
            return loop.command("sample", *command)
        return loop.without_configuration("sample", *command, topic)

    loop.take("sample", right)
    refused = sampled()
    loop.grant("sample", right)
    read = sampled()
    assert (refused.returncode, read.returncode) == (1, 0), read.stderr
    assert "if it exists, grant READ on it" in refused.stderr
    assert "predictions" in read.stdout


def test_dead_letters_are_not_listed_without_the_right(loop: Roles) -> None:
    right = KafkaRight("topic", loop.deployment.settings.kafka.topics.dead_letters, "Read")
    loop.take("dead-letters", right)
    refused = loop.command("dead-letters", "dead-letters", "list")
    loop.grant("dead-letters", right)
    assert refused.returncode == 1
    assert "grant READ on it" in refused.stderr


@pytest.mark.parametrize(
    ("role", "key", "operation", "logged"),
    [
        ("predictions", "predictions", "Read", "grant READ on the topics"),
        ("predictions", "group", "Read", "grant READ on the consumer groups"),
        ("predictions", "dead_letters", "Write", "WRITE on those that are written"),
        ("labels", "labels", "Read", "grant READ on the topics"),
        ("labels", "group", "Read", "grant READ on the consumer groups"),
        ("labels", "dead_letters", "Write", "WRITE on those that are written"),
        ("schedule", "label_requests", "Write", "WRITE on those that are written"),
    ],
)
def test_a_right_that_is_taken_is_told_and_the_work_goes_on_with_it(
    loop: Roles, role: str, key: str, operation: Any, logged: str
) -> None:
    kafka = loop.deployment.settings.kafka
    right = (
        KafkaRight("group", f"{kafka.group_prefix}.{role}", operation)
        if key == "group"
        else KafkaRight("topic", getattr(kafka.topics, key), operation)
    )
    assert right in kafka_rights(loop.deployment.settings, role)
    process = loop.processes[role]
    wait_for(process.ready, seconds=60, what="readiness")
    told_before = loop.log(role).count(logged)
    loop.take(role, right)
    loop.deployment.send("predictions", BAD_PREDICTION)
    loop.deployment.send("labels", BAD_LABEL)
    loop.deployment.producer.flush()
    wait_for(lambda: loop.log(role).count(logged) > told_before, seconds=60, what=f"'{logged}'")
    wait_for(lambda: process.get("/readyz")[0] == 503, seconds=30, what="that it is not ready")
    loop.grant(role, right)
    wait_for(process.ready, seconds=90, what="readiness")


def test_every_kafka_right_is_one_of_those(loop: Roles) -> None:
    """Each right of the table is taken away by one of the tests above."""
    settings = loop.deployment.settings
    logged = {role: len(kafka_rights(settings, role)) for role in ROLES}
    assert {role: count for role, count in logged.items() if count} == {
        "predictions": 3,
        "labels": 3,
        "schedule": 1,
        "sample": 1,
        "send-predictions": 1,
        "send-labels": 1,
        "dead-letters": 3,
        "topics": 4,
    }


def test_nothing_was_refused_by_redis(loop: Roles) -> None:
    with redis.Redis(
        port=int(loop.deployment.settings.redis.url.get_secret_value().split(":")[-1][:-2])
    ) as client:
        assert client.execute_command("ACL", "LOG") == []


@pytest.mark.parametrize("role", [role for role in ROLES if role not in NOT_IN_REDIS])
def test_the_redis_rights_of_a_role_are_what_it_does_and_no_more(loop: Roles, role: str) -> None:
    rules = redis_rules(loop.deployment.settings, role)
    commands = loop.recorder.commands(role)
    missing = loop.recorder.refused(rules, commands)
    assert not missing, f"service/app/permissions.py lacks, for {role}: {[c[:4] for c in missing]}"
    idle = [
        rule
        for rule in rules
        if not loop.recorder.refused([each for each in rules if each != rule], commands)
    ]
    assert not idle, f"service/app/permissions.py grants {role} what it never did: {idle}"
    only_read = [
        rule
        for rule in rules
        if rule.startswith("~")
        and not loop.recorder.refused([f"%R{each}" if each == rule else each for each in rules], commands)
    ]
    assert not only_read, f"service/app/permissions.py lets {role} write what it only read: {only_read}"
