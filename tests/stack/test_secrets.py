"""Nothing that Credence says holds a secret or a payload: not at debug level, not when everything fails."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
import yaml
from apache_kafka import ApacheKafka
from encrypted_redis import EncryptedRedis
from harness import CLI, Deploy, Deployment, Process, prediction, wait_for
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from office import Caller
from token_issuer import AUDIENCE, NAME, TokenEndpoint, TokenIssuer

from service.demo.ports import free_port

MECHANISMS = ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER")
USER = "credence"
PAGES = (
    *("/metrics", "/healthz", "/readyz", "/"),
    *("/api/v1/models", "/api/v1/models/sorter", "/api/v1/openapi.json"),
)


class Secrets:
    """Random values that are recognised wherever they turn up, and the forms that they turn up in."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def new(self, name: str) -> str:
        self._known[name] = f"{name}-{secrets.token_hex(12)}"
        return self._known[name]

    def know(self, name: str, secret: str) -> str:
        self._known[name] = secret
        return secret

    def found_in(self, text: str) -> list[str]:
        """Names of those that a text holds."""
        return [name for name, secret in self._known.items() if any(form in text for form in _forms(secret))]


def _forms(secret: str) -> Iterator[str]:
    plain = secret.encode()
    yield from (secret, quote(secret, safe=""), plain.hex())
    for shift in range(3):
        # Wherever it stands in what was encoded; its ends are mixed with what is around it.
        encoded = base64.b64encode(b"\0" * shift + plain).decode()[4:-4]
        yield from (encoded, encoded.replace("+", "-").replace("/", "_"))


@pytest.fixture(scope="module")
def known() -> Secrets:
    return Secrets()


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture(scope="module")
def kafka(
    known: Secrets, issuer: TokenIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    password = known.new("kafka-password")
    keys = issuer.write_keys(tmp_path_factory.mktemp("issuer") / "keys.json").as_uri()
    security, client = "org.apache.kafka.common.security", "listener.name.client"
    bearer = f"{client}.oauthbearer.sasl"
    config = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"{client}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{client}.plain.sasl.jaas.config": (
            f'{security}.plain.PlainLoginModule required user_{USER}="{password}";'
        ),
        f"{client}.scram-sha-512.sasl.jaas.config": f"{security}.scram.ScramLoginModule required;",
        f"{bearer}.jaas.config": f"{security}.oauthbearer.OAuthBearerLoginModule required;",
        f"{bearer}.server.callback.handler.class": (
            f"{security}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        f"{bearer}.oauthbearer.jwks.endpoint.url": keys,
        f"{bearer}.oauthbearer.expected.audience": AUDIENCE,
        f"{bearer}.oauthbearer.expected.issuer": NAME,
    }
    java = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"]
    with ApacheKafka(config=config, java_options=java) as kafka:
        with kafka.admin() as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(USER, ScramMechanism.SCRAM_SHA_512, password.encode())]
            )
        yield kafka


def security(mechanism: str, known: Secrets, endpoint: TokenEndpoint, client_secret: str) -> dict[str, Any]:
    if mechanism == "OAUTHBEARER":
        login = {"token_endpoint": endpoint.url, "client_id": USER, "client_secret": client_secret}
    else:
        login = {"username": USER, "password": known._known["kafka-password"]}
    return {"protocol": "sasl_plaintext", "mechanism": mechanism} | login


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_secret_and_no_payload_is_told_at_debug_level_through_failures(  # noqa: PLR0917 - fixtures
    kafka: ApacheKafka,
    known: Secrets,
    issuer: TokenIssuer,
    deploy: Deploy,
    tmp_path: Path,
    mechanism: str,
) -> None:
    with ExitStack() as stack:
        client_secret = known.new("client-secret")
        endpoint = stack.enter_context(TokenEndpoint(issuer, {USER: client_secret}, life_seconds=10))
        server = EncryptedRedis(tmp_path, stack)
        redis_password, key_password = known.new("redis-password"), known.new("key-password")
        mine = server.write("locked", server.authority.issue_cert("me@example.com"), password=key_password)
        deployment = deploy(broker=kafka.internal_servers, redis_url=server.server.url, partitions=1)
        assert deployment.settings.log_level == "debug"
        login = security(mechanism, known, endpoint, client_secret)
        deployment.configure("kafka", bootstrap_servers=kafka.bootstrap_servers.split(","), security=login)
        encrypted = {"url": server.url, "username": USER, "password": redis_password}
        deployment.configure("redis", **encrypted, **server.settings | mine, key_password=key_password)
        document = yaml.safe_load(deployment.config.read_text())
        document["hash_key"] = known.know("hash-key", secrets.token_hex(16))
        vendor = Caller(free_port(), known.new("vendor-token"), seconds=60)
        digest = hashlib.sha256(str(vendor.token).encode()).hexdigest()
        document["vendors"] = {"acme": {"label_keys": [known.new("label-key")], "token_sha256": [digest]}}
        document["vendor_api"] = {"port": vendor.port}
        deployment.config.write_text(yaml.safe_dump(document))
        said = _goes_wrong(deployment, known, login, mechanism)
        said += _lives_through_it(deployment, kafka, server, known, redis_password, vendor)
        said += [_checked(deployment.config)]
        for number, token in enumerate(issuer.given):
            known.know(f"token-{number}", token)
        assert [known.found_in(text) for text in said if known.found_in(text)] == []
        for failure in ("redis is unavailable", "kafka is unavailable", "redis refuses", "kafka refuses"):
            assert any(failure in text for text in said), f"the test has not seen that {failure}"


def _goes_wrong(deployment: Deployment, known: Secrets, login: dict[str, Any], mechanism: str) -> list[str]:
    """What a process says whose login is refused by Kafka and by Redis."""
    wrong = {key: known.new(f"wrong-{key}") for key in ("password", "client_secret") if key in login}
    right = deployment.config.read_text()
    deployment.configure("kafka", security=login | wrong)
    logged = "check client_id, client_secret" if mechanism == "OAUTHBEARER" else "check mechanism, username"
    with redis.Redis(port=_plain_port(deployment)) as admin:
        admin.execute_command("ACL", "SETUSER", USER, "reset", "on", "nopass", "~*", "+@all")
    with deployment.process("run") as refused:
        # The client's own words, and ours.
        for text in (logged, "kafka refuses"):
            wait_for(lambda text=text: text in refused.log.read_text(), seconds=60, what=f"'{text}'")
        pages = _pages(refused)
    deployment.config.write_text(right)
    return [refused.log.read_text(), *pages]


def _lives_through_it(  # noqa: PLR0917 - all that it lives through
    deployment: Deployment,
    kafka: ApacheKafka,
    server: EncryptedRedis,
    known: Secrets,
    redis_password: str,
    vendor: Caller,
) -> list[str]:
    """What a process says that Redis refuses, works, gets what it cannot read, and loses both servers."""

    def let_in(password: str) -> None:
        with redis.Redis(port=server.server.port) as admin:
            rules = ["reset", "on", f">{password}", "~*", "+@all"]
            admin.execute_command("ACL", "SETUSER", USER, *rules)

    def restart_redis() -> None:
        server.server.stop()
        wait_for(
            lambda: "redis is unavailable" in process.log.read_text(), seconds=60, what="Redis's absence"
        )
        server.restart()

    let_in(known.new("another-password"))
    with deployment.process("run") as process:
        wait_for(
            lambda: "check username and password of `redis`" in process.log.read_text(),
            seconds=60,
            what="Redis's refusal",
        )
        let_in(redis_password)
        wait_for(process.ready, seconds=90, what="readiness")
        _send_all_kinds(deployment, known)
        _answer(vendor, deployment, known)
        pages = _pages(process)
        for restart in (restart_redis, lambda: (kafka.stop(), kafka.start())):
            restart()
            let_in(redis_password)
            _send_all_kinds(deployment, known)
            wait_for(process.ready, seconds=120, what="readiness after a restart")
        pages += _pages(process)
        process.popen.terminate()
        process.popen.wait(60)
    listed = deployment.run_command("dead-letters", "list")
    assert "malformed" in listed.stdout
    status = deployment.run_command("status")
    return [process.log.read_text(), *pages, listed.stdout + listed.stderr, status.stdout + status.stderr]


def _answer(vendor: Caller, deployment: Deployment, known: Secrets) -> None:
    """Have a vendor answer a request by its token; its label is signed on its way."""
    held = wait_for(vendor.claim, seconds=60, what="a request to answer")
    assert known.found_in(json.dumps(held)) == ["payload"]
    assert vendor.answer(held[0]).status == 202

    def answered() -> bool:
        tallies = deployment.facts().requests().tallies
        return any(event == "answered" and count for (event, _), count in tallies.items())

    wait_for(answered, seconds=60, what="the outcome of the signed label")
    another = Caller(vendor.port, known.new("wrong-token"))
    assert another.get("/claims").status == 401


def _send_all_kinds(deployment: Deployment, known: Secrets) -> None:
    """Predictions and labels, good and bad ones, each with a content that is recognised."""
    for number in range(40):
        payload = {"secret": known.new("payload")} if number == 0 else {"secret": known._known["payload"]}
        deployment.send("predictions", json.dumps(prediction(number) | {"payload": payload}).encode())
    content = known.new("bad-content")
    for kind in ("predictions", "labels"):
        for bad in (
            f'{{"model": "{content}"',
            f'{{"model": "sorter", "item_id": 7, "{content}": "{content}"}}',
            f'"{content}"',
            content,
        ):
            deployment.send(kind, bad.encode(), key=content)
        deployment.send(kind, content.encode() + b"\xff\xfe")
    deployment.producer.flush()


def _pages(process: Process) -> list[str]:
    return [process.get(path)[1] for path in PAGES]


def _plain_port(deployment: Deployment) -> int:
    port: int = deployment._redis.connection_pool.connection_kwargs["port"]
    return port


def _checked(config: Path) -> str:
    """What is said of the configuration, as it is and with secrets where they cannot stand."""
    right = config.read_text()
    document = yaml.safe_load(right)
    url, password = document["redis"]["url"], document["redis"]["password"]
    [label_key] = document["vendors"]["acme"]["label_keys"]
    said = []
    for changes in (
        {},
        {"redis": document["redis"] | {"passwort": password}},
        {"redis": document["redis"] | {"password": [password]}},
        {"redis": document["redis"] | {"url": url.replace("//", f"//:{password}/{password}@")}},
        {"vendors": {"acme": document["vendors"]["acme"] | {"label_keys": label_key}}},
        {"vendors": {"acme": document["vendors"]["acme"] | {"label_keys": [label_key[:31]]}}},
        {"hash_key": document["hash_key"] + "0"},
        {"kafka": document["kafka"] | {"security": document["kafka"]["security"] | {"mechanism": password}}},
    ):
        config.write_text(yaml.safe_dump(document | changes))
        said.append(_check(config))
    config.write_text(right + f"redis: {{password: {password}\n")
    said.append(_check(config))
    config.write_text(right)
    return "\n".join(said)


def _check(config: Path) -> str:
    run = subprocess.run(
        [*CLI, "check", "--config", str(config)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in run.stderr
    return run.stdout + run.stderr


@pytest.mark.parametrize("wrapped", ["{}", "user\0{}", "a{}b", "ab{}c"])
def test_a_secret_is_recognised_in_what_it_is_wrapped_in(wrapped: str) -> None:
    known = Secrets()
    text = wrapped.format(known.new("word"))
    for logged in (text, repr(text.encode()), text.encode().hex(), base64.b64encode(text.encode()).decode()):
        assert known.found_in(f"... {logged} ...") == ["word"]
    assert known.found_in("... nothing ...") == []
