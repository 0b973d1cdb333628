"""All settings of Credence; frozen. `service.config.loader` reads them once, at start."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from service.config.assessments import ErrorRateSettings
from service.config.bounds import Bounds
from service.config.mapping import LabelMapping, PredictionMapping
from service.config.model import ModelSettings
from service.config.schema_registry import SchemaRegistrySettings
from service.config.senders import SenderName, SenderSettings
from service.config.types import Frozen, Host, Name, Port, PositiveSeconds, Probability, Server, matching
from service.config.vendors import VendorApiSettings, VendorName, VendorSettings
from service.domain.cells import CHALLENGE, POSITIVE_SCORE, SCORE_BIN, VOTES, CellBounds, CellSpace
from service.domain.groupings import (
    ALL,
    ByChallenger,
    ByPositiveScore,
    ByScore,
    ByStratum,
    ByVotes,
    Everything,
    Grouping,
)

HashKey = Annotated[SecretStr, matching(r"[0-9A-Fa-f]{32}", "must be 32 hexadecimal digits")]


class Topics(Frozen):
    """Names of the Kafka topics."""

    predictions: Name = "credence.predictions"
    """predictions of your models; Credence reads it"""
    label_requests: Name = "credence.label-requests"
    """requests for labels; Credence writes it"""
    labels: Name = "credence.labels"
    """labels from your labellers; Credence reads it"""
    dead_letters: Name = "credence.dead-letters"
    """refused messages; Credence writes it"""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [self.predictions, self.label_requests, self.labels, self.dead_letters]
        if len(set(names)) != len(names):
            raise ValueError("the four topics must differ from one another")
        return self


class KafkaSecurity(Frozen):
    """TLS and authentication of the Kafka connection. Files are PEM."""

    protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    """security protocol of all connections: `ssl` encrypts them, `sasl` authenticates Credence"""
    ca_file: str | None = None
    """CA certificates that verify the brokers; default: those of the system"""
    certificate_file: str | None = None
    """with `ssl`: client certificate, followed by its intermediate certificates"""
    key_file: str | None = None
    """private key of the client certificate"""
    key_password: SecretStr | None = None
    """password of the private key, if it is encrypted"""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = None
    """SASL mechanism"""
    username: str | None = Field(default=None, min_length=1)
    """SASL username; not for `OAUTHBEARER`"""
    password: SecretStr | None = None
    """SASL password; not for `OAUTHBEARER`"""
    token_file: str | None = None
    """for `OAUTHBEARER`: file with the token; read again for every connection"""
    token_endpoint: str | None = None
    """for `OAUTHBEARER`, instead of `token_file`: URL of the token endpoint (client credentials grant); must
    be `https`, except on loopback"""
    token_ca_file: str | None = None
    """CA certificates that verify the token endpoint; default: those of the system"""
    client_id: str | None = Field(default=None, min_length=1)
    """client ID for the token endpoint"""
    client_secret: SecretStr | None = None
    """client secret for the token endpoint"""
    scope: str | None = Field(default=None, min_length=1)
    """scopes of the token, separated by spaces"""


class KafkaSettings(Frozen):
    """Connection to Kafka, and how consumers read from it."""

    bootstrap_servers: list[Server] = Field(default=["127.0.0.1:9092"], min_length=1)
    """brokers for the first connection, as host:port"""
    security: KafkaSecurity = KafkaSecurity()
    topics: Topics = Topics()
    schema_registry: SchemaRegistrySettings | None = None
    """registry of the schemas of Avro, Protobuf and JSON Schema values; without it, these are refused"""
    mapping: PredictionMapping | None = None
    """where the fields of predictions are in records of another shape; without it, records have the fields of
    the contract"""
    label_mapping: LabelMapping | None = None
    """where the fields of labels are in records of another shape"""
    group_prefix: Name = "credence"
    """prefix of the consumer groups: `<prefix>.predictions` and `<prefix>.labels`"""
    session_timeout_seconds: PositiveSeconds = 30.0
    """session timeout: if a consumer sends no heartbeat for this long, its partitions are reassigned"""
    instance_id: Name | None = None
    """static group membership: a name that is unique to this process and survives restarts, such as the pod's
    name. Its partitions are not reassigned during a restart of up to `session_timeout_seconds`"""
    metadata_seconds: PositiveSeconds = 30.0
    """interval at which new partitions and recreated topics are detected"""
    start: Literal["earliest", "latest"] = "earliest"
    """where to start reading a new topic; partitions added later are always read from the start"""
    max_poll_records: int = Field(default=10_000, ge=1, le=100_000)
    """maximum number of records per poll"""
    fast_fetch: bool = True
    """use a faster parser of record batches, if a self-test at start shows that it reads like kafka-python"""
    flush_seconds: PositiveSeconds = 1.0
    """maximum time that consumed records wait in memory before they are written to Redis"""
    flush_records: int = Field(default=50_000, ge=1)
    """maximum number of consumed records that wait in memory"""
    partitions: int = Field(default=4, ge=1)
    """number of partitions of topics that `credence topics create` creates"""
    replication_factor: int = Field(default=1, ge=1)
    """replication factor of topics that `credence topics create` creates"""


class RedisSettings(Frozen):
    """Connection to Redis."""

    url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """URL of Redis; `rediss://` uses TLS. May contain username and password"""
    username: str | None = Field(default=None, min_length=1)
    """ACL username; default: the user `default`"""
    password: SecretStr | None = None
    """password, if `url` does not contain it"""
    ca_file: str | None = None
    """with `rediss://`: CA certificates that verify Redis; default: those of the system"""
    certificate_file: str | None = None
    """with `rediss://`: client certificate, followed by its intermediate certificates"""
    key_file: str | None = None
    """private key of the client certificate"""
    key_password: SecretStr | None = None
    """password of the private key, if it is encrypted"""
    prefix: Name = "credence"
    """prefix of every key"""
    cluster: bool = False
    """whether Redis is a Redis Cluster; `url` then names any of its nodes, or a DNS name of all nodes"""
    timeout_seconds: PositiveSeconds = 5.0
    """timeout for connecting and for each reply"""


class MonitoringSettings(Frozen):
    """Listener for metrics and health checks; by default on loopback only."""

    host: Host = "127.0.0.1"
    port: Port = 8401


class HttpSettings(Frozen):
    """Listener for the status page and its API; by default on loopback only."""

    host: Host = "127.0.0.1"
    port: Port = 8400
    allowed_hosts: list[str] = Field(default=[])
    """accepted values of the `Host` header, such as `localhost` or `*.example.com`; empty accepts any. This
    protects against DNS rebinding"""
    history_hours: float = Field(default=24.0, gt=0, le=8_760)
    """length of the history on the status page"""


class ScheduleSettings(Frozen):
    """Intervals of the scheduler."""

    tick_seconds: PositiveSeconds = 5.0
    """interval of rounds, in which estimates are computed and labels requested"""
    lease_seconds: PositiveSeconds = 15.0
    """duration of the leader's lease: another replica takes over after the leader has not renewed it for this
    long"""

    performance_seconds: PositiveSeconds = 30.0
    """rest between two learnings in the background: of the performance of binary classifiers, of annotators,
    and of items without an unrequested label"""

    @model_validator(mode="after")
    def _lease_outlives_ticks(self) -> Self:
        if self.lease_seconds < 2 * self.tick_seconds:
            raise ValueError("lease_seconds must be at least twice tick_seconds, or leadership flaps")
        return self


class DeadLetterSettings(Frozen):
    """When a consumer pauses, instead of sending more bad messages to the dead-letter topic."""

    pause_ratio: Probability = 0.5
    """the consumer pauses if more than this share of messages is bad"""
    pause_window: int = Field(default=1_000, ge=1)
    """number of recent messages for which the share is computed"""


class Settings(Frozen):
    """All settings of Credence."""

    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    http: HttpSettings = HttpSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    vendor_api: VendorApiSettings = VendorApiSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    bounds: Bounds = Bounds()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """minimum level of messages that are logged"""
    hash_key: HashKey | None = None
    """32 hexadecimal digits that determine which items are drawn; default: a random key, stored in Redis"""
    seed: int | None = Field(default=None, ge=0)
    """seed of Thompson sampling; default: unpredictable"""
    models: dict[Name, ModelSettings] = Field(min_length=1)
    """the deployed classifiers, by the model name in their predictions"""
    vendors: dict[VendorName, VendorSettings] = Field(default={})
    """labelling vendors, by name; without vendors, any producer may write to the labels topic"""
    senders: dict[SenderName, SenderSettings] = Field(default={})
    """senders of predictions over HTTP, by name; they use the listener and the limits of `vendor_api`"""

    def hash_key_bytes(self) -> bytes | None:
        """The configured hash key, 16 bytes, or None."""
        return None if self.hash_key is None else bytes.fromhex(self.hash_key.get_secret_value())

    @property
    def has_vendor_api(self) -> bool:
        """Whether the vendor API is served: a vendor has a token for it."""
        return any(vendor.token_sha256 for vendor in self.vendors.values())

    @property
    def has_http_apis(self) -> bool:
        """Whether the listener of `vendor_api` is needed: by vendors, or by senders of predictions."""
        return self.has_vendor_api or bool(self.senders)

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
        for asked in settings.assessments_of(ErrorRateSettings).values():
            if attribute := groupings[asked.grouping].attribute:
                name = asked.asked_grouping
                groupings[name] = ByStratum(name, attribute, positive=asked.positive_class)
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
            selections=settings.selections,
        )
