"""Settings: one YAML file and the `CREDENCE_*` environment, read once, frozen.

An environment variable overrides the key that its name spells, with two underscores
between the levels: `CREDENCE_REDIS__URL` is `redis.url`. With `_FILE` behind the name
the value is read from that file, for secrets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from service.cells import ALL, SCORE_BIN, CellBounds, CellSpace, Grouping
from service.errors import ConfigurationError

ENVIRONMENT_PREFIX = "CREDENCE_"

_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=_NAME_PATTERN, max_length=128)]
# YAML reads 0, 1, 2 as numbers and yes, no as booleans; classes are always text on the wire.
ClassName = Annotated[
    str, BeforeValidator(lambda v: str(v) if type(v) is int else v), Field(min_length=1, max_length=256)
]
Probability = Annotated[float, Field(ge=0, le=1)]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


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
        default=30.0, gt=0, description="how long an answer may be corrected or retracted"
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

    task: Literal["estimation", "identification"] = Field(
        default="estimation", description="know every group, or find the extreme ones"
    )
    metric: Literal["accuracy"] = Field(default="accuracy", description="what is asked about")
    extreme: Literal["lowest"] = Field(default="lowest", description="with identification: which end")
    top_m: int = Field(default=1, ge=1, description="with identification: how many groups")
    grouping: Name = Field(
        default=ALL, description="one of the model's groupings; `all` and `score_bin` are always there"
    )
    policy: Literal["thompson", "random"] = Field(default="thompson", description="who is labelled next")
    budget: Budget
    max_in_flight: int = Field(default=20, ge=1, description="requests waiting for an answer, at the most")
    lease_seconds: PositiveSeconds = Field(
        default=3_600.0, description="time to answer before a request expires"
    )
    max_attempts: int = Field(default=2, ge=1, le=100, description="how often one item is asked for")
    reveal_prediction: bool = Field(
        default=False, description="show labellers what the model predicted (this sways them)"
    )


class AlertSettings(_Frozen):
    """Thresholds that alerts compare beliefs with."""

    min_accuracy: Probability | None = Field(default=None, description="of every group")
    max_ece: Probability | None = Field(default=None, description="of every group")


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
    prior: Literal["learned", "informed", "informed_jeffreys", "uniform"] = Field(
        default="learned", description="belief about a group before its labels"
    )
    interval: float = Field(default=0.95, gt=0, lt=1, description="probability inside credible intervals")
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


def load_settings(path: Path, environment: Mapping[str, str]) -> Settings:
    """Read and validate the settings.

    Args:
        path: the YAML file.
        environment: usually `os.environ`; only `CREDENCE_*` is looked at.

    Raises:
        ConfigurationError: the file cannot be read, or a key is unknown or has an impossible value;
            every problem is named by the path of its key.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise ConfigurationError([("(file)", error.strerror or "cannot be read")], str(path)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # Not its text, and not as the cause: both quote the line, which may hold a secret.
        raise ConfigurationError([("(file)", f"is not valid YAML{_where(error)}")], str(path)) from None
    if not isinstance(document, dict):
        raise ConfigurationError([("(file)", "must be a mapping at the top level")], str(path))
    _overlay_environment(document, environment)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError([_described(e) for e in error.errors()], str(path)) from None
    if problems := _cross_reference_problems(settings):
        raise ConfigurationError(problems, str(path))
    return settings


class _UniqueKeyLoader(yaml.SafeLoader):
    """A SafeLoader that refuses duplicate keys instead of keeping the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                break  # the base class refuses it
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key!r}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _overlay_environment(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in RESERVED_VARIABLES:
            continue
        name, text = variable.removeprefix(ENVIRONMENT_PREFIX), environment[variable]
        if name.endswith("_FILE"):
            name = name.removesuffix("_FILE")
            try:
                text = Path(text).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "not UTF-8 text"
                raise ConfigurationError(
                    [(variable, f"names a file that cannot be read: {why}")], "environment"
                ) from None
        *parents, last = [part.lower() for part in name.split("__")]
        target = document
        for part in parents:
            child = target.get(part)
            if child is None:
                child = target[part] = {}
            if not isinstance(child, dict):
                raise ConfigurationError([(variable, f"{part!r} is not a group of settings")], "environment")
            target = child
        try:
            target[last] = text if last in PLAIN_TEXT_KEYS else yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigurationError(
                [(variable, f"is not valid YAML{_where(error)}")], "environment"
            ) from None


def _where(error: Exception) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    mark = error.problem_mark
    return f": {error.problem} at line {mark.line + 1}, column {mark.column + 1}"


PLAIN_TEXT_KEYS = frozenset({"url", "hash_key", "host"})
"""Keys whose value in the environment is text as it stands, not YAML."""

RESERVED_VARIABLES = frozenset({"CREDENCE_CONFIG"})
"""Variables of the command line, not of the settings."""


def _described(error: Any) -> tuple[str, str]:
    path = ".".join(str(part) for part in error["loc"]) or "(file)"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "unknown key"
    elif error["type"] == "missing":
        message = "required, but absent"
    return path, message


def _cross_reference_problems(settings: Settings) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    for model_name, model in settings.models.items():
        at = f"models.{model_name}"
        problems += [
            (f"{at}.groupings.{name}", "this name is taken; `all` and `score_bin` are always there")
            for name in model.groupings
            if name in (ALL, SCORE_BIN)
        ]
        for name, grouping in model.groupings.items():
            problems += _superclass_problems(f"{at}.groupings.{name}", model, grouping)
        known = [ALL, SCORE_BIN, *model.groupings]
        for name, assessment in model.assessments.items():
            if assessment.grouping not in known:
                problems.append(
                    (
                        f"{at}.assessments.{name}.grouping",
                        f"unknown grouping {assessment.grouping!r}; this model has {', '.join(known)}",
                    )
                )
            if assessment.task == "identification" and assessment.grouping == ALL:
                problems.append(
                    (f"{at}.assessments.{name}.grouping", "identification needs more than one group")
                )
        if any(path.startswith(f"{at}.") for path, _ in problems):
            continue
        space = settings.cell_space(model_name)
        if space.cells_per_combination > settings.bounds.cells:
            problems.append(
                (
                    "bounds.cells",
                    (
                        f"model {model_name!r} needs at least {space.cells_per_combination} "
                        "(classes x score bins); raise it, or use fewer score bins"
                    ),
                )
            )
    return problems


def _superclass_problems(at: str, model: ModelSettings, grouping: GroupingSettings) -> list[tuple[str, str]]:
    if grouping.superclasses is None:
        return []
    members = [name for names in grouping.superclasses.values() for name in names]
    problems = [
        (f"{at}.superclasses", f"{name!r} is no class of the model")
        for name in dict.fromkeys(members)
        if name not in model.classes
    ]
    problems += [
        (f"{at}.superclasses", f"class {name!r} stands in {members.count(name)} superclasses, not in one")
        for name in model.classes
        if members.count(name) != 1
    ]
    return problems
