"""Settings: what Credence can be told; frozen. `service.settings_file` reads them, once."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from service.cells import ALL, SCORE_BIN, CellBounds, CellSpace, Grouping

_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=_NAME_PATTERN, max_length=128)]
# YAML reads 0, 1, 2 as numbers and yes, no as booleans; classes are always text on the wire.
ClassName = Annotated[
    str, BeforeValidator(lambda v: str(v) if type(v) is int else v), Field(min_length=1, max_length=256)
]
Probability = Annotated[float, Field(ge=0, le=1)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


Task = Literal["estimation", "identification", "comparison"]
Metric = Literal["accuracy", "overall_accuracy", "calibration", "confusion", "cost"]
Extreme = Literal["lowest", "highest"]
Policy = Literal["thompson", "random", "multiple_play", "top_two", "epsilon_greedy", "bayes_ucb"]

METRICS: dict[Task, tuple[Metric, ...]] = {
    "estimation": ("accuracy", "overall_accuracy", "calibration", "confusion"),
    "identification": ("accuracy", "calibration", "cost"),
    "comparison": ("accuracy",),
}
"""What every task can be about."""

CONFUSION_CLASSES = 1_000
"""Confusion and cost, which take arrays of classes by classes, are known of models with so many at most."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Topics(_Frozen):
    """Names of the Kafka topics."""

    predictions: Name = Field(default="credence.predictions", description="what the models say; read")
    label_requests: Name = Field(
        default="credence.label-requests", description="what people are asked; written"
    )
    labels: Name = Field(default="credence.labels", description="what people answer; read")
    dead_letters: Name = Field(default="credence.dead-letters", description="messages refused; written")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [self.predictions, self.label_requests, self.labels, self.dead_letters]
        if len(set(names)) != len(names):
            raise ValueError("the four topics must differ from one another")
        return self


class KafkaSettings(_Frozen):
    """How to reach Kafka, and how to read from it."""

    bootstrap_servers: list[str] = Field(
        default=["127.0.0.1:9092"], min_length=1, description="brokers to begin with, as host:port"
    )
    topics: Topics = Topics()
    group_prefix: Name = Field(
        default="credence", description="consumer groups are `<prefix>.predictions`, …"
    )
    session_timeout_seconds: PositiveSeconds = Field(
        default=30.0, description="a silent consumer's partitions move to another one after this time"
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="where to begin with partitions that have no stored offset"
    )
    max_poll_records: int = Field(
        default=5_000, ge=1, le=100_000, description="most records that one poll takes"
    )
    flush_seconds: PositiveSeconds = Field(default=1.0, description="longest time that facts wait in memory")
    flush_records: int = Field(default=5_000, ge=1, description="most records that wait in memory")
    partitions: int = Field(default=4, ge=1, description="for `credence topics create`")
    replication_factor: int = Field(default=1, ge=1, description="for `credence topics create`")


class RedisSettings(_Frozen):
    """How to reach Redis."""

    url: SecretStr = Field(default=SecretStr("redis://127.0.0.1:6379/0"), description="may hold a password")
    prefix: Name = Field(default="credence", description="first part of every key")
    timeout_seconds: PositiveSeconds = Field(default=5.0, description="for connecting and for every reply")


class HttpSettings(_Frozen):
    """Where the status page, health and metrics are served. Loopback alone, unless you say otherwise."""

    host: str = Field(default="127.0.0.1", description="address to listen on; 0.0.0.0 is every one")
    port: int = Field(default=8400, ge=0, le=65_535, description="0 takes a free port")


class ScheduleSettings(_Frozen):
    """How often Credence looks, and asks."""

    tick_seconds: PositiveSeconds = Field(default=5.0, description="time between two rounds")
    lease_seconds: PositiveSeconds = Field(
        default=15.0, description="a leader that is silent for this long is replaced"
    )

    @model_validator(mode="after")
    def _lease_outlives_ticks(self) -> Self:
        if self.lease_seconds < 2 * self.tick_seconds:
            raise ValueError("lease_seconds must be at least twice tick_seconds, or leadership flaps")
        return self


class Bounds(_Frozen):
    """Bounds on memory and message sizes; each has a metric that tells when it is hit."""

    cells: int = Field(default=20_000, ge=1, description="cells per model")
    slots_per_cell: int = Field(default=16, ge=1, le=1_024, description="pooled items per cell and partition")
    attribute_values: int = Field(default=50, ge=1, description="values told apart per attribute")
    attribute_length: int = Field(default=64, ge=1, description="longest attribute value, in characters")
    message_bytes: int = Field(default=1_048_576, ge=256, description="longest record value")
    payload_bytes: int = Field(default=16_384, ge=0, description="longest inline payload kept in the pool")
    probability_classes: int = Field(
        default=200, ge=0, description="class-probability sums are kept for models with at most so many"
    )
    correction_days: float = Field(
        default=30.0, gt=0, le=3_650, description="how long an answer may be corrected or retracted"
    )
    outcomes: int = Field(default=1_000_000, ge=1_000, description="outcomes kept per model, about")


class DeadLetterSettings(_Frozen):
    """When bad messages are discarded one by one, and when the consumer stops instead."""

    flood_ratio: Probability = Field(default=0.5, description="stop above this share of bad messages …")
    flood_window: int = Field(default=1_000, ge=1, description="… among the last so many messages")


class GroupingSettings(_Frozen):
    """A partition of a model's traffic."""

    by: Literal["predicted_class", "superclass", "attribute"] = Field(description="what tells groups apart")
    attribute: Name | None = Field(default=None, description="with `by: attribute`: its name")
    superclasses: dict[Name, list[ClassName]] | None = Field(
        default=None, description="with `by: superclass`: the classes of every superclass"
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.by == "attribute") != (self.attribute is not None):
            raise ValueError("`attribute` is given with `by: attribute`, and only then")
        if (self.by == "superclass") != (self.superclasses is not None):
            raise ValueError("`superclasses` is given with `by: superclass`, and only then")
        return self


class Budget(_Frozen):
    """How many labels an assessment may cost."""

    labels: int = Field(ge=1, description="labels, requests in flight included")
    per_days: float | None = Field(
        default=None, gt=0, description="the budget renews after so many days (UTC); never, if absent"
    )


class AssessmentSettings(_Frozen):
    """One standing question about a model."""

    task: Task = Field(
        default="estimation", description="know every group, find the extreme ones, or compare two groups"
    )
    metric: Metric = Field(default="accuracy", description="what is asked about")
    extreme: Extreme | None = Field(
        default=None,
        description="with identification: which end; if absent the worse one: the lowest accuracy, "
        "the highest calibration error or cost",
    )
    top_m: int = Field(default=1, ge=1, description="with identification: how many groups")
    between: list[ClassName] | None = Field(
        default=None, min_length=2, max_length=2, description="with comparison: names of the two groups"
    )
    region: float = Field(
        default=0.05, gt=0, lt=1, description="with comparison: difference of accuracies that does not matter"
    )
    grouping: Name = Field(
        default=ALL, description="one of the model's groupings; `all` and `score_bin` are always there"
    )
    policy: Policy = Field(default="thompson", description="who is labelled next")
    budget: Budget
    max_in_flight: int = Field(default=20, ge=1, description="requests waiting for an answer, at the most")
    lease_seconds: PositiveSeconds = Field(
        default=3_600.0, description="time to answer before a request expires"
    )
    max_attempts: int = Field(default=2, ge=1, le=100, description="how often one item is asked for")
    reveal_prediction: bool = Field(
        default=False, description="show labellers what the model predicted (this sways them)"
    )

    @property
    def end(self) -> Extreme:
        """The end that identification looks for."""
        return self.extreme or ("lowest" if self.metric == "accuracy" else "highest")

    @property
    def asked_grouping(self) -> str:
        """The grouping that labels are asked for: the score bins, where it is overall accuracy."""
        return SCORE_BIN if self.metric == "overall_accuracy" else self.grouping


class AlertSettings(_Frozen):
    """Thresholds that alerts compare beliefs with."""

    min_accuracy: Probability | None = Field(default=None, description="of every group")
    max_ece: Probability | None = Field(default=None, description="of every group")


class Mistake(_Frozen):
    """What one kind of mistake costs."""

    true: ClassName = Field(description="what it is")
    predicted: ClassName = Field(description="what the model says")
    cost: float = Field(ge=0, allow_inf_nan=False, description="in any unit")

    @model_validator(mode="before")
    @classmethod
    def _true_is_a_name(cls, given: Any) -> Any:
        # YAML takes the key for a truth value.
        if isinstance(given, dict):
            return {"true" if key is True else key: value for key, value in given.items()}
        return given


class CostSettings(_Frozen):
    """What wrong predictions cost; right ones cost nothing."""

    default: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="of a mistake not listed")
    mistakes: list[Mistake] = Field(default=[], description="those that cost more, or less")


class ModelSettings(_Frozen):
    """One deployed classifier."""

    classes: list[ClassName] = Field(min_length=2, max_length=10_000, description="label set, in order")
    score_bins: int | list[float] = Field(
        default=10, description="number of equal-width bins, or their inner edges"
    )
    groupings: dict[Name, GroupingSettings] = Field(
        default_factory=dict, description="partitions of the model's traffic, by name"
    )
    assessments: dict[Name, AssessmentSettings] = Field(
        default_factory=dict, description="standing questions about the model, by name"
    )
    alerts: AlertSettings = AlertSettings()
    costs: CostSettings | None = Field(
        default=None, description="of mistakes, for a model with a grouping by predicted class"
    )
    prior: Literal["learned", "informed", "informed_jeffreys", "uniform", "vague"] = Field(
        default="learned", description="belief about a group before its labels"
    )
    interval: float = Field(default=0.95, gt=0, lt=1, description="probability inside credible intervals")
    interval_kind: Literal["equal_tailed", "highest_density"] = Field(
        default="equal_tailed",
        description="of accuracy and cost: as much probability on either side, or the shortest interval",
    )
    traffic_half_life_days: float | None = Field(
        default=7.0, gt=0, description="traffic counts half after this time; never less, if null"
    )
    label_half_life_days: float | None = Field(
        default=None, gt=0, description="a label counts half after this time; never less, if null"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("classes must differ from one another")
        too_few = isinstance(self.score_bins, int) and self.score_bins < 1
        limits = (0.0, *self.score_edges, 1.0)
        if too_few or not all(low < high for low, high in itertools.pairwise(limits)):
            raise ValueError("score_bins must be at least 1, or inner edges that ascend within (0, 1)")
        return self

    @property
    def score_edges(self) -> tuple[float, ...]:
        """Inner edges of the score bins."""
        if isinstance(self.score_bins, int):
            return tuple(i / self.score_bins for i in range(1, max(self.score_bins, 0)))
        return tuple(self.score_bins)

    @property
    def traffic_decay_per_second(self) -> float:
        """The design's lambda, in 1/s; 0 without a half-life."""
        return decay_per_second(self.traffic_half_life_days)

    @property
    def label_decay_per_second(self) -> float:
        """How fast labels lose weight, in 1/s; 0 without a half-life."""
        return decay_per_second(self.label_half_life_days)


class Settings(_Frozen):
    """Everything that Credence can be told."""

    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    http: HttpSettings = HttpSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    bounds: Bounds = Bounds()
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe messages that are logged"
    )
    hash_key: SecretStr | None = Field(
        default=None,
        description="32 hexadecimal digits that decide what is drawn; made and kept in Redis if absent",
    )
    seed: int | None = Field(default=None, ge=0, description="of Thompson sampling; unpredictable if absent")
    models: dict[Name, ModelSettings] = Field(
        min_length=1, description="the deployed classifiers, by the name that their predictions carry"
    )

    @field_validator("hash_key")
    @classmethod
    def _hash_key_is_16_bytes(cls, hash_key: SecretStr | None) -> SecretStr | None:
        if hash_key is not None:
            try:
                key = bytes.fromhex(hash_key.get_secret_value())
            except ValueError:
                key = b""
            if len(key) != 16:  # noqa: PLR2004 - the key length that SipHash defines
                raise ValueError("must be 32 hexadecimal digits")
        return hash_key

    def hash_key_bytes(self) -> bytes | None:
        """The configured hash key, 16 bytes, or None."""
        return None if self.hash_key is None else bytes.fromhex(self.hash_key.get_secret_value())

    def cell_space(self, model: str) -> CellSpace:
        """The cells of one model, from its groupings and the bounds."""
        settings = self.models[model]
        groupings = {ALL: Grouping(ALL, "all"), SCORE_BIN: Grouping(SCORE_BIN, "score_bin")}
        for name, grouping in settings.groupings.items():
            superclasses = {c: s for s, members in (grouping.superclasses or {}).items() for c in members}
            groupings[name] = Grouping(name, grouping.by, grouping.attribute or "", superclasses)
        return CellSpace(
            classes=tuple(settings.classes),
            score_edges=settings.score_edges,
            groupings=groupings,
            bounds=CellBounds(self.bounds.cells, self.bounds.attribute_values, self.bounds.attribute_length),
        )


def decay_per_second(half_life_days: float | None) -> float:
    """Rate of exponential decay in 1/s for a half-life in days; 0 for None."""
    return 0.0 if half_life_days is None else math.log(2) / (half_life_days * 86_400)
