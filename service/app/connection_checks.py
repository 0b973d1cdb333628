"""`credence check --connect`: whether a configuration works with Kafka and Redis. It changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kafka.errors import AuthorizationError, UnknownTopicOrPartitionError, for_code

from service.app.permissions import RedisRights, kafka_rights, redis_rights
from service.app.wiring import connect
from service.config.schema_registry import SchemaRegistrySettings
from service.config.settings import Settings
from service.domain.errors import Unavailable
from service.kafka.clients import build_admin
from service.kafka.schema_registry import SchemaRegistry
from service.kafka.topic_metadata import absent_topic, translate_errors
from service.store.access import missing_rights
from service.store.connection import Connection

_WITHOUT_KEY = frozenset(
    {"MULTI", "EXEC", "EVAL", "EVALSHA", "SCAN", "SELECT", "CLUSTER|SLOTS", "COMMAND", "ASKING"}
)
"""Commands that do not begin with a key, so that Redis 7.0 cannot be asked about them."""

_WRITERS = ("HSET", "SET", "DEL", "ZADD", "XADD")
_READERS = ("HGETALL", "HMGET", "GET", "LRANGE")


@dataclass(frozen=True)
class Finding:
    """What was tried, and what is wrong with it or why it cannot be tried; neither if it works."""

    what: str
    problem: str = ""
    note: str = ""
    untested: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.what}: FAILED: {self.problem}"
        if self.untested:
            return f"{self.what}: not tested: {self.untested}"
        return f"{self.what}: ok{f' ({self.note})' if self.note else ''}"


def connection_findings(settings: Settings, roles: Sequence[str]) -> Iterator[Finding]:
    """Try the servers, the topics and the rights that roles need, one after the other."""
    yield from _kafka_findings(settings, roles)
    if (registry := settings.kafka.schema_registry) is not None and {"predictions", "labels"} & {*roles}:
        yield _registry_finding(registry)
    yield from _redis_findings(settings, roles)


def _kafka_findings(settings: Settings, roles: Sequence[str]) -> Iterator[Finding]:
    rights = {right for role in roles for right in kafka_rights(settings, role)}
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for right in rights:
        wanted[right.resource, right.name].add(right.operation.upper())
    try:
        with translate_errors(), closing(build_admin(settings.kafka)) as admin:
            yield Finding("kafka", note=", ".join(settings.kafka.bootstrap_servers))
            names = sorted(name for resource, name in wanted if resource == "topic")
            topics = {topic["name"]: topic for topic in admin.describe_topics(names)}
            for name in names:
                yield from _topic_findings(name, topics.get(name), wanted["topic", name])
            for name in sorted(name for resource, name in wanted if resource == "group"):
                yield _group_finding(admin, name, wanted["group", name])
    except Unavailable as error:
        yield Finding("kafka", str(error))


def _registry_finding(registry: SchemaRegistrySettings) -> Finding:
    try:
        SchemaRegistry(registry).check()
    except Unavailable as error:
        return Finding("schema registry", str(error))
    return Finding("schema registry", note=registry.url)


def _topic_findings(name: str, topic: Any, operations: set[str]) -> Iterator[Finding]:
    what, code = f"topic {name}", UnknownTopicOrPartitionError.errno if topic is None else topic["error_code"]
    if code == UnknownTopicOrPartitionError.errno:
        yield Finding(what, f"{absent_topic(name)}, or grant DESCRIBE on it")
    elif code:
        yield Finding(what, f"{for_code(code).__name__}; grant {_listed(operations)} on it")
    else:
        partitions = topic["partitions"]
        leaderless = [each["partition_index"] for each in partitions if each["leader_id"] < 0]
        if leaderless:
            yield Finding(what, f"no broker leads partitions {leaderless}; start the brokers that hold them")
        else:
            yield Finding(
                what, note=f"{len(partitions)} {'partition' if len(partitions) == 1 else 'partitions'}"
            )
        yield _rights_finding(f"rights on {what}", topic.get("authorized_operations"), operations)


def _group_finding(admin: Any, name: str, operations: set[str]) -> Finding:
    """Whether the user sees a group: a right to read it implies that, and joining it would be a change."""
    what, problem = f"consumer group {name}", f"grant {_listed(operations)} on it"
    try:
        admin.list_group_offsets({name: None})
    except AuthorizationError as error:
        return Finding(what, f"{type(error).__name__}; {problem}")
    return Finding(what)


def _rights_finding(what: str, granted: Iterable[Any] | None, operations: set[str]) -> Finding:
    names = {str(getattr(each, "name", each)).upper() for each in granted or ()}
    if not names:
        return Finding(what, untested="this broker does not report permissions")
    if missing := operations - names - ({*operations} if "ALL" in names else set()):
        return Finding(what, f"missing {_listed(missing)}; grant what `credence rights kafka` prints")
    return Finding(what, note=_listed(operations))


def _listed(operations: Iterable[str]) -> str:
    return ", ".join(sorted(operations))


def _redis_findings(settings: Settings, roles: Sequence[str]) -> Iterator[Finding]:
    try:
        connection = connect(settings)
        with closing(connection.client):
            missing_rights(connection, [])
            yield Finding("redis")
            for role in roles:
                yield _redis_rights(connection, role, redis_rights(settings, role))
    except Unavailable as error:
        yield Finding("redis", str(error))


def _redis_rights(connection: Connection, role: str, rights: RedisRights) -> Finding:
    what = f"rights in redis for {role}"
    missing = missing_rights(connection, list(_uses(rights)))
    if missing is None:
        return Finding(what, untested="needs Redis 7 without a cluster, and permission for EVAL")
    if missing:
        return Finding(
            what, f"missing {'; '.join(missing)}; grant the rights that `credence rights redis` prints"
        )
    return Finding(what)


def _uses(rights: RedisRights) -> Iterator[tuple[str, str]]:
    """Every command with a key of the role, and every key with a command of the role."""
    commands = sorted(rights.every_command() - _WITHOUT_KEY)
    keys = {True: rights.writes, False: (*rights.reads, *rights.writes)}
    anywhere = (keys[True] or keys[False])[:1]
    yield from ((command, key.replace("*", "check")) for command in commands for key in anywhere)
    for patterns, probes in ((rights.writes, _WRITERS), (rights.reads, _READERS)):
        probe = next((name for name in probes if name in commands), None)
        if probe is not None:
            yield from ((probe, pattern.replace("*", "check")) for pattern in patterns)
