"""The vendor API with the rights in Redis of `service/access.py` alone."""

from __future__ import annotations

import pytest
from label_studio_shapes import annotation
from office import LABEL_KEYS, VENDORS, Office, Open

from service.access import RightsRole, redis_rules
from service.clients import build_redis
from service.settings import RedisSettings
from service.store.connection import Connection

KAFKA_ALONE = {"acme": VENDORS["acme"], "bolt": {"label_keys": [LABEL_KEYS["bolt"]]}}
"""One vendor claims its requests; the other one has no token."""

PASSWORD = "a-secret-of-the-tests"


def limited(office: Office, role: RightsRole) -> Connection:
    """A connection that may do what a role may do."""
    admin = office.connection.client
    if int(admin.info("server")["redis_version"].partition(".")[0]) < 7:
        pytest.skip("rights that only read are in the words of Redis 7")
    rules = redis_rules(office.settings, role)
    admin.execute_command("ACL", "SETUSER", role, "reset", "on", f">{PASSWORD}", "-@all", *rules)
    port = admin.connection_pool.connection_kwargs["port"]
    login = {"url": f"redis://127.0.0.1:{port}/0", "username": role, "password": PASSWORD}
    return Connection(build_redis(RedisSettings.model_validate(login)), office.connection.prefix)


def test_serve_does_all_that_vendors_ask_of_it(open_office: Open) -> None:
    office = open_office(vendors=KAFKA_ALONE)
    office.ask(40)
    office.connection = limited(office, "serve")
    office.desk = office.made_desk(office._producer)
    acme = office.caller("acme")
    [renewed], [released], [skipped] = acme.claim(), acme.claim(), acme.claim()
    assert acme.of(renewed, "renew").status == 200
    assert acme.of(released, "release").status == 200
    assert acme.of(skipped, "skip").status == 202
    assert acme.post("/claims", {"most": 1}, Idempotency_Key="again").status == 200
    assert acme.get("/claims").status == 200
    with office.reading():
        assert acme.answer(renewed).status == 202
        office.await_outcomes("cat")
        tasks = acme.post("/models/m/label-studio/tasks", {"most": 1}).body
        annotated = [{**task, "annotations": [annotation(1, "dog")]} for task in tasks]
        assert acme.post("/models/m/label-studio/annotations", annotated).status == 200
        office.await_outcomes("cat", "dog")
        assert acme.of(renewed, "correction", true_class="owl").status == 202
        assert acme.of(renewed, "retraction").status == 202
