"""Logins by token to a broker that verifies them: accepted, refused, renewed while clients go on."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, wait_for
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from reading import Reader, Topic
from token_issuer import AUDIENCE, NAME, TokenEndpoint, TokenIssuer

from service.config.settings import KafkaSettings
from service.domain.errors import Refused
from service.kafka.clients import build_admin, build_producer
from service.store.connection import Connection

SUBJECT = "credence"
SECRET = "a-secret-of-the-tests"
LIFE_SECONDS = 40.0
"""Of tokens, and of sessions at most: a broker ends the connection of a client that does not log in again.

A client does when 85 to 95% of it is over, which leaves it two seconds or more on a busy machine.
"""

SECURITY = {"protocol": "sasl_plaintext", "mechanism": "OAUTHBEARER"}


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture(scope="module")
def verifying(issuer: TokenIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A broker that verifies signature, issuer, audience and times of every token."""
    keys = issuer.write_keys(tmp_path_factory.mktemp("issuer") / "keys.json").as_uri()
    listener = "listener.name.client.oauthbearer"
    module = "org.apache.kafka.common.security.oauthbearer"
    config = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.client.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.sasl.jaas.config": f"{module}.OAuthBearerLoginModule required;",
        f"{listener}.sasl.server.callback.handler.class": f"{module}.OAuthBearerValidatorCallbackHandler",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": keys,
        f"{listener}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{listener}.sasl.oauthbearer.expected.issuer": NAME,
        f"{listener}.connections.max.reauth.ms": int(LIFE_SECONDS * 1000),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    java = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"]
    with ApacheKafka(config=config, java_options=java) as kafka:
        with kafka.admin() as admin:
            admin.create_acls([_granted(ResourceType.TOPIC), _granted(ResourceType.GROUP)])
        yield kafka


def _granted(kind: ResourceType) -> ACL:
    everything = ResourcePattern(kind, "*")
    return ACL(f"User:{SUBJECT}", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, everything)


@pytest.fixture
def endpoint(issuer: TokenIssuer) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(issuer, {SUBJECT: SECRET}, life_seconds=LIFE_SECONDS) as endpoint:
        yield endpoint


def by_endpoint(endpoint: TokenEndpoint, **changes: str) -> dict[str, str]:
    client = {"token_endpoint": endpoint.url, "client_id": SUBJECT, "client_secret": SECRET}
    return SECURITY | client | changes


def settings(kafka: ApacheKafka, security: dict[str, str]) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {"bootstrap_servers": kafka.bootstrap_servers.split(","), "security": security}
    )


def written(path: Path, token: str) -> dict[str, str]:
    path.write_text(token)
    return SECURITY | {"token_file": str(path)}


def test_a_token_from_a_file_is_accepted(verifying: ApacheKafka, issuer: TokenIssuer, tmp_path: Path) -> None:
    build_admin(settings(verifying, written(tmp_path / "token", issuer.token(SUBJECT)))).close()


@pytest.mark.parametrize("kind", ["audience", "issuer", "expired", "unsigned", "foreign"])
def test_a_token_that_is_not_good_is_refused_without_telling_it(
    verifying: ApacheKafka, issuer: TokenIssuer, tmp_path: Path, kind: str
) -> None:
    token = {
        "audience": lambda: issuer.token(SUBJECT, aud="another"),
        "issuer": lambda: issuer.token(SUBJECT, iss="https://another.example"),
        "expired": lambda: issuer.token(SUBJECT, life_seconds=-60, iat=time.time() - 120),
        "unsigned": lambda: issuer.unsigned(SUBJECT),
        "foreign": lambda: TokenIssuer().token(SUBJECT),
    }[kind]()
    with pytest.raises(Refused, match="check issuer, audience and times of the token") as refused:
        build_producer(settings(verifying, written(tmp_path / "token", token)), name="x")
    assert token not in str(refused.value)


def test_credentials_that_the_endpoint_refuses_are_told(
    verifying: ApacheKafka, endpoint: TokenEndpoint
) -> None:
    wrong = by_endpoint(endpoint, client_secret="another-secret")
    with pytest.raises(
        Refused, match=r"no token: `token_endpoint` refuses \(401, invalid_client\)"
    ) as refused:
        build_producer(settings(verifying, wrong), name="x")
    assert "another-secret" not in str(refused.value)


def test_clients_go_on_over_many_sessions_without_losing_a_connection(
    verifying: ApacheKafka,
    endpoint: TokenEndpoint,
    connection: Connection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = Topic(verifying)
    sessions = 2
    with (
        caplog.at_level(logging.INFO, "kafka"),
        Reader(topic, connection, security=by_endpoint(endpoint)) as reader,
    ):
        # Once something was read it has all its connections.
        topic.send(1)
        reader.wait_for_count(1)
        before, logins = len(endpoint.asked), _logins(caplog)
        open_client = _connected(caplog, verifying)
        sent = 1

        def renewed() -> bool:
            nonlocal sent
            topic.send(1)
            sent += 1
            return len(endpoint.asked) >= before + sessions

        wait_for(renewed, seconds=60, what=f"{sessions} tokens")
        reader.wait_for_count(sent)
        assert reader.loop.state == "running"
        # A token is asked for before the login that it is for.
        wait_for(lambda: _logins(caplog) >= logins + sessions, seconds=60, what=f"{sessions} logins")
        assert _connected(caplog, verifying) == open_client
        assert "re-authentication failed" not in caplog.text


def _logins(caplog: pytest.LogCaptureFixture) -> int:
    return caplog.text.count("Authenticated via SASL / OAuth")


def _connected(caplog: pytest.LogCaptureFixture, kafka: ApacheKafka) -> int:
    host, _, port = kafka.bootstrap_servers.partition(":")
    opened = (record.args for record in caplog.records if record.msg.startswith("Initializing connection"))
    return sum((host, int(port)) == tuple(arguments)[1:3] for arguments in opened if arguments)


def test_a_reader_outlasts_an_endpoint_that_is_away_longer_than_a_token(
    verifying: ApacheKafka, endpoint: TokenEndpoint, connection: Connection
) -> None:
    topic = Topic(verifying)
    with Reader(topic, connection, security=by_endpoint(endpoint)) as reader:
        reader.wait_for_state("running")
        endpoint.answer = 503, {}, b""
        wait_for(
            lambda: reader.loop.state in ("waiting", "refused"), seconds=60, what="the end of the session"
        )
        endpoint.answer = None
        topic.send(10)
        reader.wait_for_count(10)
        reader.wait_for_state("running")


def test_a_process_waits_for_a_token_file_and_reads_it_anew(
    verifying: ApacheKafka, issuer: TokenIssuer, deploy: Deploy, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    deployment = deploy(broker=verifying.internal_servers)
    security: dict[str, Any] = SECURITY | {"token_file": str(path)}
    deployment.configure("kafka", bootstrap_servers=[verifying.bootstrap_servers], security=security)
    with deployment.process("run") as process:
        wait_for(
            lambda: "`token_file` cannot be read: No such file" in process.log.read_text(),
            seconds=40,
            what="what is missing",
        )
        assert process.popen.poll() is None
        path.write_text(issuer.token(SUBJECT))
        wait_for(process.ready, seconds=60, what="readiness")
