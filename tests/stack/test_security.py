"""Logins, rights and certificates: used when they are good, reported when they are not, and tried again."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from apache_kafka import ApacheKafka
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from harness import Deploy, wait_for
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from reading import Reader, Topic

from service.config.settings import KafkaSettings
from service.domain.errors import ConfigurationError, Refused, Unavailable
from service.kafka.clients import build_admin, build_consumer, build_producer
from service.store.connection import Connection

PASSWORD = "a secret of the tests"
PROTOCOLS = "CLIENT:{},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
LOGINS = {
    "listener.security.protocol.map": PROTOCOLS.format("SASL_PLAINTEXT"),
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.client.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_credence="{PASSWORD}";'
    ),
    "listener.name.client.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LOGIN = {"protocol": "sasl_plaintext", "mechanism": "PLAIN", "username": "credence", "password": PASSWORD}


@pytest.fixture(scope="module")
def guarded() -> Iterator[ApacheKafka]:
    """A broker with logins, which lets nobody do anything by default."""
    with ApacheKafka(config=LOGINS) as kafka:
        yield kafka


def settings(kafka: ApacheKafka, **security: Any) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {"bootstrap_servers": kafka.bootstrap_servers.split(","), "security": security}
    )


def grant(kafka: ApacheKafka, kind: ResourceType, name: str, *operations: ACLOperation) -> None:
    with kafka.admin() as admin:
        admin.create_acls(
            [
                ACL("User:credence", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
                for operation in operations
            ]
        )


def causes(caplog: pytest.LogCaptureFixture) -> str:
    """Why a loop has waited, as its log tells."""
    return "\n".join(getattr(record, "cause", "") for record in caplog.records)


def test_rights_that_are_missing_are_told_until_they_are_granted(
    guarded: ApacheKafka, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(guarded)
    with Reader(topic, connection, security=LOGIN) as reader:
        wait_for(lambda: "grant READ on the topics" in causes(caplog), seconds=40, what="the topic")
        assert reader.loop.state == "refused"
        grant(guarded, ResourceType.TOPIC, topic.name, ACLOperation.READ, ACLOperation.DESCRIBE)
        wait_for(lambda: "grant READ on the consumer groups" in causes(caplog), seconds=20, what="the group")
        assert reader.loop.state == "refused"
        grant(guarded, ResourceType.GROUP, f"{topic.name}.predictions", ACLOperation.READ)
        reader.wait_for_state("running")
        topic.send(10)
        reader.wait_for_count(10)


def test_a_login_by_scram_is_accepted(guarded: ApacheKafka) -> None:
    with guarded.admin() as admin:
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("scrambled", ScramMechanism.SCRAM_SHA_512, PASSWORD.encode())]
        )
    login = LOGIN | {"mechanism": "SCRAM-SHA-512", "username": "scrambled"}
    build_admin(settings(guarded, **login)).close()


def test_a_password_that_is_changed_leaves_connections_that_stand(guarded: ApacheKafka) -> None:
    topic = Topic(guarded)

    def have(password: str) -> None:
        with guarded.admin() as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("rotated", ScramMechanism.SCRAM_SHA_512, password.encode())]
            )

    have(PASSWORD)
    login = LOGIN | {"mechanism": "SCRAM-SHA-512", "username": "rotated"}
    writes = ResourcePattern(ResourceType.TOPIC, topic.name)
    with guarded.admin() as admin:
        admin.create_acls([ACL("User:rotated", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, writes)])
    with closing(build_producer(settings(guarded, **login), name="x")) as producer:
        producer.send(topic.name, value=b"1").get(timeout=20)
        have("another one")
        wait_for(lambda: _is_refused(guarded, login), seconds=20, what="the new password")
        producer.send(topic.name, value=b"2").get(timeout=20)


def _is_refused(kafka: ApacheKafka, login: dict[str, str]) -> bool:
    try:
        build_admin(settings(kafka, **login)).close()
    except Refused:
        return True
    return False


@pytest.mark.parametrize("build", [build_consumer, build_producer])
def test_a_login_that_is_refused_is_told_and_leaves_no_thread_behind(
    guarded: ApacheKafka, build: Any
) -> None:
    threads = threading.active_count()
    name = {"group": "x"} if build is build_consumer else {"name": "x"}
    with pytest.raises(Refused, match="check mechanism, username and password") as logged:
        build(settings(guarded, **LOGIN | {"password": "another one"}), **name)
    assert "another one" not in str(logged.value)
    wait_for(lambda: threading.active_count() <= threads, seconds=10, what="the end of the client's threads")


def test_a_process_whose_login_is_refused_waits_and_says_so(guarded: ApacheKafka, deploy: Deploy) -> None:
    deployment = deploy(broker=guarded.internal_servers)
    wrong = LOGIN | {"password": "another one"}
    deployment.configure("kafka", bootstrap_servers=[guarded.bootstrap_servers], security=wrong)
    with deployment.process("run") as process:
        wait_for(
            lambda: "check mechanism, username and password" in process.log.read_text(),
            seconds=40,
            what="the refusal",
        )
        assert process.get("/readyz")[0] == 503
        assert process.get("/healthz")[0] == 200
        assert process.popen.poll() is None


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.RSA)


def written(certificate: trustme.LeafCert, path: Path) -> Path:
    """Key and certificate in a file, the key in the form that Java reads."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(text + b"".join(part.bytes() for part in certificate.cert_chain_pems))
    return path


def encrypted(folder: Path, certificate: trustme.LeafCert, **more: str) -> dict[str, str]:
    return {
        "listener.security.protocol.map": PROTOCOLS.format("SSL"),
        "listener.name.client.ssl.keystore.type": "PEM",
        "listener.name.client.ssl.keystore.location": str(written(certificate, folder / "broker.pem")),
    } | more


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def test_connections_are_encrypted_and_both_sides_show_certificates(
    authority: trustme.CA, ca_file: str, tmp_path: Path
) -> None:
    mine = authority.issue_cert("credence@example.com")
    certificate_file = str(written(mine, tmp_path / "mine.pem"))
    trust = {
        "listener.name.client.ssl.client.auth": "required",
        "listener.name.client.ssl.truststore.type": "PEM",
        "listener.name.client.ssl.truststore.location": ca_file,
    }
    config = encrypted(tmp_path, authority.issue_cert("127.0.0.1"), **trust)
    security = {"protocol": "ssl", "ca_file": ca_file}
    with ApacheKafka(config=config) as kafka:
        with pytest.raises(Unavailable):
            build_admin(settings(kafka, **security))
        both = security | {"certificate_file": certificate_file, "key_file": certificate_file}
        build_admin(settings(kafka, **both)).close()


def test_a_certificate_that_has_expired_is_told(authority: trustme.CA, ca_file: str, tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    old = authority.issue_cert("127.0.0.1", not_before=now - 2 * day, not_after=now - day)
    with (
        ApacheKafka(config=encrypted(tmp_path, old)) as kafka,
        pytest.raises(Refused, match="certificate has expired"),
    ):
        build_consumer(settings(kafka, protocol="ssl", ca_file=ca_file), group="x")


@pytest.mark.parametrize(
    ("key", "wrong"),
    [("ca_file", {}), ("certificate_file", {"key_file": "none.pem"})],
)
def test_a_file_that_cannot_be_used_is_named_by_its_key(
    tmp_path: Path, key: str, wrong: dict[str, str]
) -> None:
    security = {"protocol": "ssl", key: str(tmp_path / "none.pem")} | wrong
    logged = KafkaSettings.model_validate({"security": security})
    with pytest.raises(ConfigurationError) as refused:
        build_admin(logged)
    assert [path for path, _ in refused.value.problems] == [f"kafka.security.{key}"]
