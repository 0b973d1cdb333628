"""Roles that log in to Redis and Kafka as users of their own, with their rights alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from apache_kafka import ApacheKafka
from harness import CLI, Deployment, Process, wait_for
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from redis_recorder import RedisRecorder

from service.app.permissions import ROLES, KafkaRight, kafka_rights, redis_rules
from service.demo.servers import EmbeddedRedis

OUTCOMES = 1_000
"""Labels that Redis keeps. At three quarters of them the scheduler writes a checkpoint of the evidence."""

_PASSWORD = "a-secret-of-the-tests"
_BROKER = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{role}="{_PASSWORD}"' for role in ROLES)
        + ";"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Roles:
    """The deployment, each of whose roles logs in as a user of its own.

    Attributes:
        deployment: its own clients may do everything.
        processes: by role, while they run.
        recorder: of Redis.
    """

    def __init__(self, deployment: Deployment, kafka: ApacheKafka, recorder: RedisRecorder) -> None:
        self.deployment = deployment
        self.kafka = kafka
        self.recorder = recorder
        self.processes: dict[str, Process] = {}

    def be(self, role: str) -> None:
        """Have what is started from now on log in as a role."""
        document = yaml.safe_load((self.deployment.folder / "credence.yaml").read_text())
        document["kafka"] |= {
            "bootstrap_servers": self.kafka.bootstrap_servers.split(","),
            "start": "latest",
            "security": {
                "protocol": "sasl_plaintext",
                "mechanism": "PLAIN",
                "username": role,
                "password": _PASSWORD,
            },
        }
        document["redis"] |= {"username": role, "password": _PASSWORD}
        self.deployment.config = self.deployment.folder / f"{role}.yaml"
        self.deployment.config.write_text(yaml.safe_dump(document))

    def command(self, role: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a role, to its end."""
        self.be(role)
        try:
            with self.recorder.running(role):
                return self.deployment.run_command(*arguments)
        except subprocess.CalledProcessError as error:
            return subprocess.CompletedProcess(error.cmd, error.returncode, error.stdout, error.stderr)

    def without_configuration(self, role: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command that takes no configuration as a role, with its login from the environment."""
        self.be(role)
        kafka = yaml.safe_load(self.deployment.config.read_text())["kafka"]
        named = {f"SECURITY__{key.upper()}": value for key, value in kafka["security"].items()}
        named["BOOTSTRAP_SERVERS"] = json.dumps(kafka["bootstrap_servers"])
        variables = {f"CREDENCE_KAFKA__{key}": value for key, value in named.items()}
        return subprocess.run(
            [*CLI, *arguments], capture_output=True, text=True, check=False, env=os.environ | variables
        )

    def start(self, role: str, stack: ExitStack, *command: str, **variables: str) -> None:
        """Start a role, and wait until it does its work; the variables are of its environment."""
        self.be(role)
        process = stack.enter_context(self.deployment.process(*command, **variables))
        self.processes[role] = process
        wait_for(process.ready, seconds=60, what=f"readiness of {role}; see {process.log}")

    def log(self, role: str) -> str:
        return self.processes[role].log.read_text()

    def grant(self, role: str, *rights: KafkaRight) -> None:
        with self.kafka.admin() as admin:
            admin.create_acls([_acl(role, right) for right in rights])

    def take(self, role: str, right: KafkaRight) -> None:
        acl = _acl(role, right)
        pattern = acl.resource_pattern
        with self.kafka.admin() as admin:
            admin.delete_acls([ACLFilter(acl.principal, "*", acl.operation, acl.permission_type, pattern)])


def _acl(role: str, right: KafkaRight) -> ACL:
    kind = ResourcePattern(ResourceType[right.resource.upper()], right.name)
    operation = ACLOperation[right.operation.upper()]
    return ACL(f"User:{role}", "*", operation, ACLPermissionType.ALLOW, kind)


@contextmanager
def redis_of_rights() -> Iterator[EmbeddedRedis]:
    """A Redis that can tell what a user may do."""
    with EmbeddedRedis() as server, redis.Redis(port=server.port) as client:
        version = str(client.info("server")["redis_version"])
        if int(version.partition(".")[0]) < 7:
            if os.environ.get("CI") == "true":
                pytest.fail(f"Redis {version} does not tell what a user may do; 7 or newer does")
            pytest.skip(f"Redis {version} does not tell what a user may do; put 7 or newer first on the PATH")
        yield server


@contextmanager
def limited_roles(folder: Path, server: EmbeddedRedis, **options: Any) -> Iterator[Roles]:
    """A deployment of one partition whose roles have their rights, and whose topics one of them made.

    Args:
        folder: for the configuration and the logs of processes.
        server: the Redis.
        options: more of the deployment.
    """
    with ExitStack() as stack:
        kafka = stack.enter_context(ApacheKafka(config=_BROKER))
        made = Deployment(
            folder, broker=kafka.internal_servers, redis_url=server.url, partitions=1, **options
        )
        deployment = stack.enter_context(closing(made))
        deployment.configure("bounds", outcomes=OUTCOMES)
        with redis.Redis(port=server.port) as admin:
            for role in ROLES:
                rules = redis_rules(deployment.settings, role)
                admin.execute_command("ACL", "SETUSER", role, "reset", "on", f">{_PASSWORD}", "-@all", *rules)
        roles = Roles(deployment, kafka, stack.enter_context(RedisRecorder(server.port)))
        _make_topics(roles)
        for role in ROLES:
            if rights := kafka_rights(deployment.settings, role):
                roles.grant(role, *rights)
        yield roles


def _make_topics(roles: Roles) -> None:
    """Have the topics made by who may make them, one after the other: each is reported while missing."""
    rights = kafka_rights(roles.deployment.settings, "topics")
    names = [right.name for right in rights]
    with roles.kafka.admin() as admin:
        admin.delete_topics(names)
        wait_for(lambda: not set(names) & set(admin.list_topics()), seconds=20, what="the deletion")
    for right in rights:
        tried = roles.command("topics", "topics", "create")
        assert tried.returncode == 1
        assert "grant CREATE on the topics" in tried.stderr
        roles.grant("topics", right)
    assert roles.command("topics", "topics", "create").returncode == 0
