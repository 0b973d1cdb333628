"""Settings: what Credence can be told; frozen. `service.config.loader` reads them, once."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from service.config.bounds import Bounds
from service.config.model import ModelSettings
from service.config.types import Frozen, Host, Name, Port, PositiveSeconds, Probability, Server, matching
from service.config.vendors import VendorApiSettings, VendorName, VendorSettings
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES, CellBounds, CellSpace
from service.domain.groupings import (
    ALL,
    ByChallenger,
    ByPositiveScore,
    ByScore,
    ByVotes,
    Everything,
    Grouping,
)

HashKey = Annotated[SecretStr, matching(r"[0-9A-Fa-f]{32}", "must be 32 hexadecimal digits")]


class Topics(Frozen):
    """Names of the Kafka topics."""

    predictions: Name = "credence.predictions"
    """what the models say; read"""
    label_requests: Name = "credence.label-requests"
    """what people are asked; written"""
    labels: Name = "credence.labels"
    """what people answer; read"""
    dead_letters: Name = "credence.dead-letters"
    """messages refused; written"""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [self.predictions, self.label_requests, self.labels, self.dead_letters]
        if len(set(names)) != len(names):
            raise ValueError("the four topics must differ from one another")
        return self


class KafkaSecurity(Frozen):
    """Who Kafka is, and who Credence is to it. Files hold PEM."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    """of all connections; with `sasl` a login, with `ssl` encrypted"""
    ca_file: str | None = None
    """certificates by which brokers are known; the system's if absent"""
    certificate_file: str | None = None
    """with `ssl`: the certificate that Credence shows, and those above it"""
    key_file: str | None = None
    """the certificate's private key"""
    key_password: SecretStr | None = None
    """of the private key, if it is encrypted"""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    """of the login"""
    username: str | None = Field(default=None, min_length=1)
    """of the login, but for `OAUTHBEARER`"""
    password: SecretStr | None = None
    """of the login, but for `OAUTHBEARER`"""
    token_file: str | None = None
    """for `OAUTHBEARER`: a file with the token; read again for every login"""
    token_endpoint: str | None = None
    """for `OAUTHBEARER`, instead of a file: the URL where client credentials are given for a token; `https`,
    but for loopback"""
    token_ca_file: str | None = None
    """certificates by which the token endpoint is known; the system's if absent"""
    client_id: str | None = Field(default=None, min_length=1)
    """for the token endpoint"""
    client_secret: SecretStr | None = None
    """for the token endpoint"""
    scope: str | None = Field(default=None, min_length=1)
    """what a token is asked for; several, with blanks between"""


class KafkaSettings(Frozen):
    """How to reach Kafka, and how to read from it."""

    bootstrap_servers: list[Server] = Field(default=["127.0.0.1:9092"], min_length=1)
    """brokers to begin with, as host:port"""
    security: KafkaSecurity = KafkaSecurity()
    topics: Topics = Topics()
    group_prefix: Name = "credence"
    """consumer groups are `<prefix>.predictions`, …"""
    session_timeout_seconds: PositiveSeconds = 30.0
    """a silent consumer's partitions move to another one after this time"""
    instance_id: Name | None = None
    """a name that this process keeps over restarts and no other one has, such as its pod's; its partitions
    wait for it while it restarts, for `session_timeout_seconds` at most"""
    metadata_seconds: PositiveSeconds = 30.0
    """how soon new partitions and recreated topics are noticed"""
    start: Literal["earliest", "latest"] = "earliest"
    """where to begin with a topic that was never read; partitions added later are read whole"""
    max_poll_records: int = Field(default=10_000, ge=1, le=100_000)
    """most records that one poll takes"""
    fast_fetch: bool = False
    """take record batches apart faster than the client library does, if its version is known"""
    flush_seconds: PositiveSeconds = 1.0
    """longest time that facts wait in memory"""
    flush_records: int = Field(default=50_000, ge=1)
    """most records that wait in memory"""
    partitions: int = Field(default=4, ge=1)
    """for `credence topics create`"""
    replication_factor: int = Field(default=1, ge=1)
    """for `credence topics create`"""


class RedisSettings(Frozen):
    """How to reach Redis."""

    url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """`rediss://` is encrypted; may hold username and password"""
    username: str | None = Field(default=None, min_length=1)
    """of the login; the user `default` if absent"""
    password: SecretStr | None = None
    """of the login, where `url` holds none"""
    ca_file: str | None = None
    """with `rediss://`: certificates by which Redis is known; the system's if absent"""
    certificate_file: str | None = None
    """with `rediss://`: the certificate that Credence shows, and those above it"""
    key_file: str | None = None
    """the certificate's private key"""
    key_password: SecretStr | None = None
    """of the private key, if it is encrypted"""
    prefix: Name = "credence"
    """first part of every key"""
    cluster: bool = False
    """a Redis Cluster; `url` is of any of its nodes, or a name of them all"""
    timeout_seconds: PositiveSeconds = 5.0
    """for connecting and for every reply"""


class MonitoringSettings(Frozen):
    """Where metrics and health are served, apart from the page. Loopback alone, unless you say otherwise."""

    host: Host = "127.0.0.1"
    port: Port = 8401


class HttpSettings(Frozen):
    """Where the status page and its API are served. Loopback alone, unless you say otherwise."""

    host: Host = "127.0.0.1"
    port: Port = 8400
    allowed_hosts: list[str] = Field(default=[])
    """names to be asked under, such as `localhost` or `*.example.com`; any, if empty. It keeps pages
    elsewhere from reading this one through a name that they point here (DNS rebinding)"""
    history_hours: float = Field(default=24.0, gt=0, le=8_760)
    """how far back the page shows estimates"""


class ScheduleSettings(Frozen):
    """How often Credence looks, and asks."""

    tick_seconds: PositiveSeconds = 5.0
    """time between two rounds"""
    lease_seconds: PositiveSeconds = 15.0
    """a leader that is silent for this long is replaced"""

    performance_seconds: PositiveSeconds = 30.0
    """time between two looks at the performance of binary classifiers, beside the rounds"""

    @model_validator(mode="after")
    def _lease_outlives_ticks(self) -> Self:
        if self.lease_seconds < 2 * self.tick_seconds:
            raise ValueError("lease_seconds must be at least twice tick_seconds, or leadership flaps")
        return self


class DeadLetterSettings(Frozen):
    """When bad messages are discarded one by one, and when the consumer stops instead."""

    pause_ratio: Probability = 0.5
    """stop above this share of bad messages …"""
    pause_window: int = Field(default=1_000, ge=1)
    """… among the last so many messages"""


class Settings(Frozen):
    """Everything that Credence can be told."""

    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    http: HttpSettings = HttpSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    vendor_api: VendorApiSettings = VendorApiSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    bounds: Bounds = Bounds()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """least severe messages that are logged"""
    hash_key: HashKey | None = None
    """32 hexadecimal digits that decide what is drawn; made and kept in Redis if absent"""
    seed: int | None = Field(default=None, ge=0)
    """of Thompson sampling; unpredictable if absent"""
    models: dict[Name, ModelSettings] = Field(min_length=1)
    """the deployed classifiers, by the name that their predictions carry"""
    vendors: dict[VendorName, VendorSettings] = Field(default={})
    """who may be asked, by name; without any, whoever writes to the labels topic answers"""

    def hash_key_bytes(self) -> bytes | None:
        """The configured hash key, 16 bytes, or None."""
        return None if self.hash_key is None else bytes.fromhex(self.hash_key.get_secret_value())

    @property
    def has_vendor_api(self) -> bool:
        """Whether the vendor API is served: a vendor has a token for it."""
        return any(vendor.token_sha256 for vendor in self.vendors.values())

    def vendors_of(self, model: str) -> dict[str, VendorSettings]:
        """The vendors that may be asked about a model, by name; none where vendors are not configured."""
        return {
            name: vendor
            for name, vendor in self.vendors.items()
            if vendor.models is None or model in vendor.models
        }

    def cell_space(self, model: str) -> CellSpace:
        """The cells of one model, from its groupings and the bounds."""
        settings = self.models[model]
        groupings: dict[str, Grouping] = {ALL: Everything(ALL), SCORE_BIN: ByScore(SCORE_BIN)}
        if settings.positive_class is not None:
            groupings[POSITIVE_SCORE] = ByPositiveScore(POSITIVE_SCORE, positive=settings.positive_class)
        if settings.ensemble is not None:
            groupings[VOTES] = ByVotes(VOTES, VOTES)
        if settings.challenge is not None:
            groupings[CHALLENGE] = ByChallenger(CHALLENGE, CHALLENGE)
        groupings |= {name: grouping.partition(name) for name, grouping in settings.groupings.items()}
        return CellSpace(
            classes=tuple(settings.classes),
            score_edges=settings.score_edges,
            groupings=groupings,
            bounds=CellBounds(
                self.bounds.attribute_values,
                self.bounds.attribute_length,
                self.bounds.further_attribute_bytes,
            ),
            ensemble=settings.ensemble,
            challenge=settings.challenge,
        )
