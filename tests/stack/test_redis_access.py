"""Logins, rights and certificates of Redis: used when good, reported when not, and tried again."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme
from encrypted_redis import EncryptedRedis
from harness import Deploy, wait_for
from store_site import Owner, Site, message, record

from service.app.permissions import redis_rules
from service.config.settings import RedisSettings
from service.demo.servers import EmbeddedRedis
from service.domain.errors import ConfigurationError, Refused, Unavailable
from service.store.client import build_redis
from service.store.connection import Connection, translate_redis_errors

PASSWORD = "a-secret-of-the-tests"
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as server:
        yield server


@contextmanager
def user(server: EmbeddedRedis, *rules: str) -> Iterator[str]:
    """A user with the password and these rules."""
    name = f"user-{secrets.token_hex(4)}"
    allow(server, name, "reset", "on", f">{PASSWORD}", *rules)
    yield name
    allow(server, name, "off")


def allow(server: EmbeddedRedis, name: str, *rules: str) -> None:
    with redis.Redis(port=server.port) as admin:
        admin.execute_command("ACL", "SETUSER", name, *rules)


def reach(url: str, **more: Any) -> bytes:
    """Ask a Redis for a key."""
    with build_redis(RedisSettings.model_validate({"url": url} | more)) as client, translate_redis_errors():
        return bytes(client.get("key") or b"")


def test_a_user_logs_in_by_settings_or_by_the_url(server: EmbeddedRedis) -> None:
    with user(server, "~key", "+get") as name:
        reach(server.url, username=name, password=PASSWORD)
        reach(server.url.replace("//", f"//{name}:{PASSWORD}@"))
        reach(server.url.replace("//", f"//{name}@"), password=PASSWORD)


def test_a_login_asks_for_no_right_of_its_own(server: EmbeddedRedis) -> None:
    with user(server, "~key", "+get") as name, redis.Redis(port=server.port) as admin:
        admin.execute_command("ACL", "LOG", "RESET")
        reach(server.url, username=name, password=PASSWORD)
        assert admin.execute_command("ACL", "LOG") == []


def test_a_login_that_is_refused_is_told_without_the_password(server: EmbeddedRedis) -> None:
    wrong = secrets.token_hex(8)
    with user(server, "+get") as name, pytest.raises(Refused, match="check username and password") as logged:
        reach(server.url, username=name, password=wrong)
    assert wrong not in str(logged.value)


def test_a_password_is_changed_without_a_gap_while_two_are_good(server: EmbeddedRedis) -> None:
    with user(server, "~key", "+get") as name:
        settings = RedisSettings.model_validate({"url": server.url, "username": name, "password": PASSWORD})
        with build_redis(settings) as client:
            client.get("key")
            allow(server, name, ">another-one")
            reach(server.url, username=name, password=PASSWORD)
            reach(server.url, username=name, password="another-one")
            allow(server, name, f"<{PASSWORD}")
            client.get("key")  # a connection that stands goes on
            with pytest.raises(Refused, match="check username and password"):
                reach(server.url, username=name, password=PASSWORD)


def test_a_login_that_is_missing_is_told() -> None:
    with EmbeddedRedis() as closed, redis.Redis(port=closed.port) as admin:
        admin.config_set("requirepass", PASSWORD)
        with pytest.raises(Refused, match="check username and password"):
            reach(closed.url)
        reach(closed.url, password=PASSWORD)


@pytest.mark.parametrize(
    ("rules", "logged"), [(["~key"], r"lacks a right \(GET\)"), (["+get", "~other"], "lacks a right")]
)
def test_a_right_that_is_missing_is_told(server: EmbeddedRedis, rules: list[str], logged: str) -> None:
    with user(server, *rules) as name, pytest.raises(Refused, match=logged):
        reach(server.url, username=name, password=PASSWORD)


def test_a_right_that_is_missing_is_told_of_a_pipeline_without_what_was_sent(server: EmbeddedRedis) -> None:
    with user(server, "~key", "+get") as name:
        settings = RedisSettings.model_validate({"url": server.url, "username": name, "password": PASSWORD})
        with build_redis(settings) as client:
            pipeline = client.pipeline(transaction=False)
            pipeline.set("key", "confidential")
            with pytest.raises(Refused, match=r"\(SET\)") as logged, translate_redis_errors():
                pipeline.execute()
        assert "confidential" not in str(logged.value)


@pytest.mark.parametrize("lacking", ["hset", "sadd", "hmget"])
def test_a_script_that_lacks_a_right_does_nothing_until_it_has_it(
    server: EmbeddedRedis, lacking: str
) -> None:
    models = {"m": {"classes": ["a", "b"]}}
    with ExitStack() as stack:
        admin = stack.enter_context(redis.Redis(port=server.port))
        if int(str(admin.info("server")["redis_version"]).partition(".")[0]) < 7:
            pytest.skip("Redis before 7 does not tell a script what it may do")
        everything = Site(Connection(admin, secrets.token_hex(4)), models)
        name = stack.enter_context(user(server, *redis_rules(everything.settings, "predictions")))
        settings = {"url": server.url, "username": name, "password": PASSWORD}
        client = stack.enter_context(build_redis(RedisSettings.model_validate(settings)))
        site = Site(Connection(client, everything.connection.prefix), models)
        owner = Owner(site, {0: [record(i, message(i, predicted_class="a")) for i in range(5)]})
        owner.take(0, 5)
        allow(server, name, f"-{lacking}")
        with pytest.raises(Refused, match=rf"lacks a right \({lacking.upper()}\)"):
            owner.flush(0)
        allow(server, name, f"+{lacking}")
        assert owner.flush(0)
        traffic = everything.reader("m").traffic()
        assert (traffic.partitions, traffic.traffic.predictions) == ([0], 5)


def test_a_process_waits_for_its_login_and_for_its_rights(server: EmbeddedRedis, deploy: Deploy) -> None:
    deployment = deploy(redis_url=server.url, partitions=1)
    every = {
        rule
        for role in ("predictions", "labels", "schedule", "serve")
        for rule in redis_rules(deployment.settings, role)
    }
    with user(server, *sorted(every), "-smembers") as name:
        allow(server, name, "resetpass", ">another-one")
        deployment.configure("redis", username=name, password=PASSWORD)
        with deployment.process("run") as process:

            def says(text: str) -> bool:
                return text in process.log.read_text()

            wait_for(lambda: says("check username and password of `redis`"), seconds=40, what="the refusal")
            assert process.get("/readyz")[0] == 503
            assert process.get("/healthz")[0] == 200
            allow(server, name, "resetpass", f">{PASSWORD}")
            wait_for(lambda: says("lacks a right (SMEMBERS)"), seconds=60, what="the missing right")
            assert process.get("/readyz")[0] == 503
            assert process.get("/healthz")[0] == 200
            allow(server, name, "+smembers")
            wait_for(process.ready, seconds=60, what="readiness")
            deployment.send_predictions(range(50))
            wait_for(lambda: deployment.predictions_stored() == 50, seconds=40, what="the predictions")
            allow(server, name, "-evalsha")
            wait_for(lambda: says("lacks a right (EVALSHA)"), seconds=40, what="the right that was taken")
            deployment.send_predictions(range(50, 100))
            wait_for(lambda: process.get("/readyz")[0] == 503, seconds=40, what="that it is not ready")
            allow(server, name, "+evalsha")
            wait_for(lambda: deployment.predictions_stored() == 100, seconds=60, what="the predictions")
            wait_for(process.ready, seconds=60, what="readiness")
        assert PASSWORD not in process.log.read_text()


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EncryptedRedis]:
    with ExitStack() as stack:
        yield EncryptedRedis(tmp_path_factory.mktemp("encrypted"), stack)


def test_connections_are_encrypted_and_both_sides_show_certificates(encrypted: EncryptedRedis) -> None:
    reach(encrypted.url, **encrypted.settings)
    with pytest.raises(Refused, match="check the certificates of both sides"):
        reach(encrypted.url, ca_file=encrypted.settings["ca_file"])


def test_a_key_may_be_encrypted(encrypted: EncryptedRedis) -> None:
    mine = encrypted.write("locked", encrypted.authority.issue_cert("me@example.com"), password=PASSWORD)
    reach(encrypted.url, **encrypted.settings | mine, key_password=PASSWORD)
    with pytest.raises(ConfigurationError) as refused:
        reach(encrypted.url, **encrypted.settings | mine, key_password="another-one")
    assert [path for path, _ in refused.value.problems] == ["redis.certificate_file"]
    assert "another-one" not in str(refused.value)


def test_a_redis_that_another_authority_vouches_for_is_refused(encrypted: EncryptedRedis) -> None:
    stranger = encrypted.folder / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(str(stranger))
    with pytest.raises(Refused, match=r"check the certificates of both sides: .*(issuer|self-signed)"):
        reach(encrypted.url, **encrypted.settings | {"ca_file": str(stranger)})


def test_a_redis_of_another_name_is_refused(encrypted: EncryptedRedis) -> None:
    with pytest.raises(Refused, match="certificate is not valid for 'localhost'"):
        reach(encrypted.url.replace("127.0.0.1", "localhost"), **encrypted.settings)


def test_a_certificate_that_is_renewed_in_place_counts_without_a_restart(encrypted: EncryptedRedis) -> None:
    now = dt.datetime.now(dt.UTC)
    old = encrypted.authority.issue_cert("me@example.com", not_before=now - 2 * DAY, not_after=now - DAY)
    settings = encrypted.settings | encrypted.write("renewed", old)
    with build_redis(RedisSettings.model_validate({"url": encrypted.url} | settings)) as client:
        with pytest.raises(Refused, match="check the certificates"), translate_redis_errors():
            client.get("key")
        encrypted.write("renewed", encrypted.authority.issue_cert("me@example.com"))
        assert client.get("key") is None
        (encrypted.folder / "renewed.key").unlink()
        assert client.get("key") is None  # a connection that stands goes on
        client.connection_pool.disconnect()
        with pytest.raises(Refused, match=r"redis\.certificate_file"), translate_redis_errors():
            client.get("key")


def test_a_file_that_cannot_be_used_is_named_by_its_key(encrypted: EncryptedRedis) -> None:
    with pytest.raises(ConfigurationError) as refused:
        reach(encrypted.url, ca_file=str(encrypted.folder / "none.pem"))
    assert [path for path, _ in refused.value.problems] == ["redis.ca_file"]


def test_a_cluster_is_reached_by_certificate_and_login_too(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = EncryptedRedis(tmp_path, stack, **{"cluster-enabled": "yes", "tls-cluster": "yes"})
        with redis.Redis(port=cluster.server.port) as admin:
            admin.execute_command("CLUSTER", "ADDSLOTS", *range(16_384))
            cluster.server.wait_until(lambda: b"cluster_state:ok" in admin.execute_command("CLUSTER", "INFO"))
        with user(cluster.server, "~key", "+get", "+cluster|slots", "+command") as name:
            login = cluster.settings | {"cluster": True, "username": name, "password": PASSWORD}
            reach(cluster.url, **login)
            with pytest.raises(Refused, match="check username and password"):
                reach(cluster.url, **login | {"password": "another-one"})
            with pytest.raises(Refused, match="check the certificates"):
                reach(cluster.url, **login | {"certificate_file": None, "key_file": None})
            allow(cluster.server, name, "-cluster|slots")
            with pytest.raises(Refused, match="lacks a right"):
                reach(cluster.url, **login)


def test_a_redis_that_speaks_no_tls_is_told(server: EmbeddedRedis) -> None:
    with pytest.raises(Unavailable):
        reach(server.url.replace("redis:", "rediss:"))
