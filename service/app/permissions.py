"""The rights that every role needs in Redis and in Kafka: the source of docs and of `credence rights`.

The commands of scripts are read from the scripts. Tests run every role with only these rights, and check that
each of them is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from service.config.settings import Settings
from service.store.connection import commands_of
from service.store.keys import (
    ModelKeys,
    consumers_key,
    epoch_key,
    hash_key_key,
    idempotency_key,
    identity_key,
    intake_key,
    leader_since_key,
    lease_key,
    losses_key,
    replay_key,
    reset_key,
    vendor_calls_key,
)

ROLES = {
    "predictions": "`credence consume predictions`",
    "labels": "`credence consume labels`",
    "schedule": "`credence schedule`",
    "serve": "`credence serve`, `credence status`, `credence gate`",
    "sample": "`credence init --topic`, `credence check --sample`",
    "send-predictions": "`credence predictions send`",
    "send-labels": "`credence labels send`",
    "dead-letters": "`credence dead-letters`",
    "layouts": "`credence layouts`",
    "reference": "`credence reference`",
    "reset": "`credence reset`",
    "topics": "`credence topics create`",
}
"""The commands that play each role; `credence run` plays the first four."""

_CALLS_SCRIPTS = frozenset({"EVALSHA", "EVAL"})
_TRANSACTION = frozenset({"MULTI", "EXEC"})
_ANY: Any = "*"


@dataclass(frozen=True)
class RedisRights:
    """What a role does in Redis.

    Attributes:
        commands: that its client sends.
        scripts: of `service/store/lua/` that it runs; what they call is needed too.
        reads: patterns of keys that it only reads.
        writes: patterns of keys that it writes, or gives to a script.
        keeps_hash_key: whether it shares the pools' hash key, unless that is configured.
    """

    commands: frozenset[str] = frozenset()
    scripts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    keeps_hash_key: bool = True

    def every_command(self) -> frozenset[str]:
        """Those of the scripts too."""
        called = frozenset(name for script in self.scripts for name in commands_of(script))
        return self.commands | called | (_CALLS_SCRIPTS if self.scripts else frozenset())


@dataclass(frozen=True, order=True)
class KafkaRight:
    """One ACL, in the words of `kafka-acls.sh`; the name is literal."""

    resource: Literal["topic", "group"]
    name: str
    operation: Literal["Read", "Write", "Create"]


def _redis_table(prefix: str) -> dict[str, RedisRights]:
    keys = ModelKeys(prefix, "*", "*")
    shards = (
        *(keys.partitions, keys.shard(_ANY), keys.traffic(_ANY), keys.sums(_ANY)),
        keys.marks(_ANY),
    )
    pools = (keys.pool(_ANY), keys.items(_ANY), keys.drawn(_ANY))
    counted = (keys.open, keys.outbox, keys.budget, keys.tallies, keys.outcomes)
    requested = (keys.request(_ANY), keys.asked(_ANY))
    again = (keys.labelled(_ANY), keys.undecided, keys.barred)
    looks = {"SMEMBERS", "HMGET", "HLEN", "HRANDFIELD", "HGETALL", "XRANGE", "HKEYS"} | _TRANSACTION
    asks = {"ZADD", "ZRANGE", "ZRANGEBYSCORE", "SMISMEMBER"}
    # Of every consumer: the script records that Redis has lost data.
    follows = ("bind_topic", "rewind_topic", "note_reset")
    recent = (losses_key(prefix), intake_key(prefix))
    health = (consumers_key(prefix), *recent, identity_key(prefix), reset_key(prefix))
    reports = {"HSET", "HGET", "HVALS", "HDEL", "HSETNX", "TIME"} | _TRANSACTION
    shows = (consumers_key(prefix), *recent, vendor_calls_key(prefix), reset_key(prefix))
    return {
        "predictions": RedisRights(
            commands=frozenset(reports | {"HMGET", "HGETALL", "HKEYS", "LRANGE"}),
            scripts=("flush", *follows),
            writes=(*shards, *pools, keys.drift, *health),
        ),
        "labels": RedisRights(
            commands=frozenset(reports | {"HMGET", "HGETALL"}),
            scripts=("apply_labels", "store_labels_offset", *follows),
            writes=(
                *(keys.open, keys.deadlines, keys.outbox, keys.outcomes, keys.tallies),
                *(keys.labels(_ANY), *requested, *again, keys.claims, *health),
            ),
        ),
        "schedule": RedisRights(
            commands=frozenset(looks | asks | {"LRANGE", "HGET", "HSET", "HDEL", "HVALS", "GET", "TIME"}),
            scripts=(
                *("issue_requests", "expire_requests", "hold_lease", "release_lease", "keep_drift"),
                *("keep_checkpoint", "settle_items"),
            ),
            reads=(*shards, keys.reference, keys.items(_ANY), identity_key(prefix), *shows[1:]),
            writes=(
                consumers_key(prefix),
                *(keys.fence, keys.deadlines, *counted, keys.pool(_ANY), keys.drawn(_ANY), *requested),
                *(*again, keys.gold, keys.claims, keys.drift, keys.evidence, keys.counts),
                *(lease_key(prefix), epoch_key(prefix), leader_since_key(prefix)),
            ),
        ),
        "serve": RedisRights(
            commands=frozenset(looks | {"HGET", "HVALS", "GET", "TIME"}),
            reads=(
                *(*shards, keys.items(_ANY), *counted, keys.reference, keys.drift, keys.evidence),
                *(keys.counts, *shows, lease_key(prefix), leader_since_key(prefix)),
            ),
        ),
        "sample": RedisRights(keeps_hash_key=False),
        "send-predictions": RedisRights(keeps_hash_key=False),
        "send-labels": RedisRights(
            commands=frozenset({"HMGET", "HGET"}),
            reads=(keys.open, keys.barred, keys.request(_ANY)),
            keeps_hash_key=False,
        ),
        "dead-letters": RedisRights(
            commands=frozenset({"SET", "GET", "MGET"}),
            writes=(replay_key(prefix, "*"),),
            keeps_hash_key=False,
        ),
        "layouts": RedisRights(
            commands=frozenset({"SCAN", "HGETALL", "HLEN", "UNLINK"}) | _TRANSACTION,
            writes=(*shards, *pools, keys.drift),
            keeps_hash_key=False,
        ),
        "reference": RedisRights(
            commands=frozenset({"HGETALL", "HSET", "DEL"}),
            writes=(keys.reference,),
            keeps_hash_key=False,
        ),
        "reset": RedisRights(
            commands=frozenset({"HGETALL", "DEL"}),
            writes=(reset_key(prefix),),
            keeps_hash_key=False,
        ),
        "topics": RedisRights(keeps_hash_key=False),
    }


def _with_vendors(prefix: str, role: str, rights: RedisRights, *, claim: bool) -> RedisRights:
    """The same where vendors are configured, and where some claim their requests by the vendor API."""
    keys = ModelKeys(prefix, "*", "*")
    claimable = keys.claimable("*")
    if role in ("labels", "schedule"):
        # Given to the scripts for every vendor: one may have had a token until now.
        return replace(rights, writes=(*rights.writes, claimable))
    if role == "serve" and claim:
        return replace(
            rights,
            commands=rights.commands | {"ZSCORE", "ZRANGEBYSCORE", "ZCOUNT", "HGET", "SET", "GET", "DEL"},
            scripts=("claim_requests", "change_claim", "keep_call"),
            reads=(*rights.reads, keys.request("*"), keys.asked(_ANY)),
            # Redis takes every key of a script for one that it writes.
            writes=(
                *(keys.claims, claimable, keys.deadlines, keys.barred, idempotency_key(prefix, "*", "*")),
                *(keys.annotation("*", "*"), keys.annotated("*", "*"), vendor_calls_key(prefix)),
            ),
        )
    return rights


def _with_senders(prefix: str, role: str, rights: RedisRights) -> RedisRights:
    """The same where predictions come over HTTP: calls with a key are done once."""
    if role != "serve":
        return rights
    keys = (idempotency_key(prefix, "*", "*"), vendor_calls_key(prefix))
    return replace(
        rights,
        commands=rights.commands | {"HSET", "HDEL"},
        scripts=tuple(dict.fromkeys((*rights.scripts, "keep_call"))),
        writes=tuple(dict.fromkeys((*rights.writes, *keys))),
    )


def _with_unrequested(prefix: str, role: str, rights: RedisRights) -> RedisRights:
    """The same where a model takes labels that nobody requested."""
    keys = ModelKeys(prefix, "*", "*")
    joins = (keys.cohorts, keys.waiting, keys.cohort(_ANY))
    scripts = {"predictions": "flush_waiting", "labels": "join_labels", "schedule": "advance_cohort"}
    more = {"predictions": (), "labels": (keys.early,), "schedule": (keys.closed(_ANY),)}
    if role in scripts:
        return replace(
            rights,
            scripts=(*rights.scripts, scripts[role]),
            writes=(*rights.writes, *joins, *more[role]),
        )
    return replace(rights, reads=(*rights.reads, keys.cohorts)) if role == "serve" else rights


def redis_rights(settings: Settings, role: str) -> RedisRights:
    """What a role does in Redis under these settings."""
    redis = settings.redis
    rights = _redis_table(redis.prefix)[role]
    if settings.vendors:
        rights = _with_vendors(redis.prefix, role, rights, claim=settings.has_vendor_api)
    if settings.senders:
        rights = _with_senders(redis.prefix, role, rights)
    if any(model.unrequested_labels is not None for model in settings.models.values()):
        rights = _with_unrequested(redis.prefix, role, rights)
    commands, writes = rights.commands, rights.writes
    if rights.keeps_hash_key and settings.hash_key is None:
        commands, writes = commands | {"SET", "GET"}, (*writes, hash_key_key(redis.prefix))
    if commands and urlsplit(redis.url.get_secret_value()).path not in ("", "/", "/0"):
        commands |= {"SELECT"}
    if commands and redis.cluster:
        # To find the nodes and the keys in commands, to follow keys that move, and as pipelines are
        # transactions there.
        commands |= {"CLUSTER|SLOTS", "COMMAND", "ASKING"} | _TRANSACTION
    return replace(rights, commands=commands, writes=writes)


def redis_rules(settings: Settings, role: str) -> list[str]:
    """The same as rules of an ACL user, one of each; what it has besides is to be taken before."""
    rights = redis_rights(settings, role)
    return [
        *(f"+{name.lower()}" for name in sorted(rights.every_command())),
        *(f"%R~{pattern}" for pattern in rights.reads),
        *(f"~{pattern}" for pattern in rights.writes),
    ]


def redis_lines(settings: Settings) -> Iterator[str]:
    """Lines of an ACL file: a user per role, who cannot log in before a password is put behind `on`."""
    for role in ROLES:
        if rules := redis_rules(settings, role):
            yield f"user {settings.redis.prefix}-{role} on resetchannels -@all {' '.join(rules)}"


def kafka_rights(settings: Settings, role: str) -> list[KafkaRight]:
    """What a role does in Kafka under these settings; a right to read or write implies one to describe."""
    topics, prefix = settings.kafka.topics, settings.kafka.group_prefix
    own_topics = [vendor.topic for vendor in settings.vendors.values() if vendor.topic is not None]
    served = [topics.labels] if settings.has_vendor_api else []
    served += [topics.predictions] if settings.senders else []
    reads: dict[str, list[str]] = {
        "predictions": [topics.predictions],
        "labels": [topics.labels],
        "sample": [topics.predictions],
        "dead-letters": [topics.dead_letters],
    }
    writes: dict[str, list[str]] = {
        "predictions": [topics.dead_letters],
        "labels": [topics.dead_letters],
        "schedule": [topics.label_requests, *own_topics],
        "serve": served,
        "send-predictions": [topics.predictions],
        "send-labels": [topics.labels],
        "dead-letters": [topics.predictions, topics.labels],
    }
    creates = [*topics.model_dump().values(), *own_topics] if role == "topics" else []
    groups = [f"{prefix}.{role}"] if role in ("predictions", "labels") else []
    return [
        *(KafkaRight("topic", name, "Read") for name in reads.get(role, [])),
        *(KafkaRight("topic", name, "Write") for name in writes.get(role, [])),
        *(KafkaRight("topic", name, "Create") for name in creates),
        *(KafkaRight("group", name, "Read") for name in groups),
    ]


def kafka_lines(settings: Settings) -> Iterator[str]:
    """Arguments of `kafka-acls.sh`, a line per right."""
    for role in ROLES:
        for right in kafka_rights(settings, role):
            principal = f"User:{settings.kafka.group_prefix}-{role}"
            yield (
                f"--add --allow-principal {principal} --operation {right.operation} "
                f"--{right.resource} {right.name}"
            )
