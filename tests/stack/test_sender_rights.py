"""What senders of predictions over HTTP add to the rights of `permissions.py`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis
from harness import prediction, wait_for
from office import Caller, Told
from roles import Roles, limited_roles, redis_of_rights

from service.app.permissions import ROLES, KafkaRight, kafka_rights, redis_rules
from service.demo.ports import free_port
from service.demo.servers import EmbeddedRedis
from service.store.idempotency import MOST_RECORDS
from service.store.keys import idempotency_key
from service.store.recent_reports import VendorCalls, vendor_calls

TOKEN = "a-token-that-is-used-by-tests-alone"
SENDERS = f"{{shop: {{models: [sorter], token_sha256: [{hashlib.sha256(TOKEN.encode()).hexdigest()}]}}}}"


class Shop:
    """The deployment, and the tool of its sender."""

    def __init__(self, roles: Roles, stack: ExitStack) -> None:
        self.roles = roles
        self.deployment = roles.deployment
        port = free_port()
        self._caller = Caller(port, TOKEN)
        connection = self.deployment.connection
        # As if many calls were done before, and one was reported long ago.
        recent = idempotency_key(connection.prefix, "shop", "recent")
        connection.client.rpush(recent, *[""] * MOST_RECORDS)
        vendor_calls(connection).add([VendorCalls("shop", "other", 1, 0, 0.0)], 0.0)
        roles.start("predictions", stack, "consume", "predictions")
        roles.start("serve", stack, "serve", CREDENCE_VENDOR_API__PORT=str(port))

    def send(self, number: int, **headers: str) -> Told:
        return self._caller.call("POST", "/v1/predictions", prediction(number), **headers)

    def answered(self, status: int, number: int) -> Told:
        """What a call is answered once it has this status; it is repeated until then."""

        def tried() -> Told | None:
            answer = self.send(number)
            return answer if answer.status == status else None

        found: Told = wait_for(tried, seconds=60, what=f"status {status}")
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with redis_of_rights() as server:
        yield server


@pytest.fixture(scope="module")
def shop(server: EmbeddedRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """All that a sender does, done once."""
    options: dict[str, Any] = {"assessments": "{}", "senders": SENDERS}
    with (
        limited_roles(tmp_path_factory.mktemp("rights"), server, **options) as roles,
        ExitStack() as stack,
    ):
        shop = Shop(roles, stack)
        shop.answered(202, 0)
        for _ in range(2):
            assert shop.send(1, Idempotency_Key="again").status == 202
        # One that is refused as Kafka does not take it is forgotten.
        right = KafkaRight("topic", roles.deployment.settings.kafka.topics.predictions, "Write")
        roles.take("serve", right)
        shop.answered(503, 2)
        assert "WRITE on those that are written" in roles.log("serve")
        assert shop.send(2, Idempotency_Key="refused").status == 503
        roles.grant("serve", right)
        shop.answered(202, 2)
        wait_for(lambda: roles.deployment.predictions_stored() >= 3, seconds=60, what="the predictions")
        _await_report(shop)
        yield shop


def _await_report(shop: Shop) -> None:
    """Wait until the calls were reported, and the old report was removed."""
    reports = vendor_calls(shop.deployment.connection)

    def reported() -> bool:
        names = {report.at for report in reports.recent(0.0)} | {r.at for r in reports.recent(time.time())}
        return bool(names) and 0.0 not in names

    wait_for(reported, seconds=90, what="the report of calls")


def test_senders_add_the_right_to_write_predictions_and_no_other_one_in_kafka(shop: Shop) -> None:
    settings = shop.deployment.settings
    without = settings.model_copy(update={"senders": {}})
    added = {role: set(kafka_rights(settings, role)) - set(kafka_rights(without, role)) for role in ROLES}
    assert {role: rights for role, rights in added.items() if rights} == {
        "serve": {KafkaRight("topic", settings.kafka.topics.predictions, "Write")}
    }


def test_the_redis_rights_that_senders_add_are_what_serve_does_and_no_more(shop: Shop) -> None:
    settings = shop.deployment.settings
    rules = redis_rules(settings, "serve")
    plain = redis_rules(settings.model_copy(update={"senders": {}}), "serve")
    commands = shop.roles.recorder.commands("serve")
    missing = shop.roles.recorder.refused(rules, commands)
    assert not missing, f"service/app/permissions.py lacks: {[c[:4] for c in missing]}"
    added = [rule for rule in rules if rule not in plain]
    assert added
    for rule in added:
        less = [each for each in rules if each != rule]
        assert shop.roles.recorder.refused(less, commands), (
            f"service/app/permissions.py grants {rule} in vain"
        )
        if rule.startswith("~"):
            read = [f"%R{each}" if each == rule else each for each in rules]
            assert shop.roles.recorder.refused(read, commands), f"serve only reads {rule}"


def test_nothing_that_senders_cause_was_refused_by_redis(shop: Shop, server: EmbeddedRedis) -> None:
    assert shop.deployment.predictions_stored() >= 3
    with redis.Redis(port=server.port) as client:
        assert client.execute_command("ACL", "LOG") == []
