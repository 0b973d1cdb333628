"""Reads the settings: one YAML file and the `CREDENCE_*` environment, once.

An environment variable overrides the key that its name spells, with two underscores
between the levels: `CREDENCE_REDIS__URL` is `redis.url`. With `_FILE` behind the name
the value is read from that file, for secrets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from service.cells import ALL, SCORE_BIN, bin_names
from service.errors import ConfigurationError
from service.model_settings import (
    CONFUSION_CLASSES,
    METRICS,
    AssessmentSettings,
    CostSettings,
    GroupingSettings,
    ModelSettings,
)
from service.security_settings import Problems, redis_problems, security_problems
from service.settings import Settings
from service.vendor_problems import vendor_problems

ENVIRONMENT_PREFIX = "CREDENCE_"

FILE_NAME_KEYS = frozenset({"ca_file", "certificate_file", "key_file", "token_ca_file", "token_file"})
"""Keys whose value is the name of a file; their variables end with `_FILE` for all that."""

PLAIN_TEXT_KEYS = FILE_NAME_KEYS | {
    "url",
    "hash_key",
    "host",
    "instance_id",
    "key_password",
    "username",
    "password",
    "token_endpoint",
    "client_id",
    "client_secret",
    "scope",
}
"""Keys whose value in the environment is text as it stands, not YAML."""

WORD_LIST_KEYS = frozenset({"label_keys", "token_sha256"})
"""Keys whose value in the environment is several words, one a line or with spaces between: a file of secrets
should be nothing but the secrets."""

_FILE_SUFFIX = "_FILE"
_TYPE_TAGS = ("int", "list[float]")
"""What pydantic adds to the path of a key that may be of several types."""

RESERVED_VARIABLES = frozenset({"CREDENCE_CONFIG"})
"""Variables of the command line, not of the settings."""


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
        # A value that fits none of several types is told once, by its key.
        described = dict(_described(e) for e in error.errors())
        raise ConfigurationError(list(described.items()), str(path)) from None
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
        named = variable.rpartition("__")[2].lower() in FILE_NAME_KEYS
        base = variable if named else variable.removesuffix(_FILE_SUFFIX)
        if base != variable and base in environment:
            raise _refused(variable, f"{base} is given too; give one of them")
        text = environment[variable] if base == variable else _file_content(variable, environment[variable])
        *parents, last = [part.lower() for part in base.removeprefix(ENVIRONMENT_PREFIX).split("__")]
        target = document
        for part in parents:
            child = target.get(part)
            if child is None:
                child = target[part] = {}
            if not isinstance(child, dict):
                raise _refused(variable, f"{part!r} is not a group of settings")
            target = child
        try:
            target[last] = _value_of(last, text)
        except yaml.YAMLError as error:
            raise _refused(variable, f"is not valid YAML{_where(error)}") from None


def _value_of(key: str, text: str) -> Any:
    if key in WORD_LIST_KEYS:
        return text.split()
    return text if key in PLAIN_TEXT_KEYS else yaml.safe_load(text)


def _file_content(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise _refused(variable, f"names a file that cannot be read: {why}") from None


def _refused(variable: str, problem: str) -> ConfigurationError:
    return ConfigurationError([(variable, problem)], "environment")


def _where(error: Exception) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    mark = error.problem_mark
    return f": {error.problem} at line {mark.line + 1}, column {mark.column + 1}"


def _described(error: Any) -> tuple[str, str]:
    path = ".".join(str(part) for part in error["loc"] if part not in _TYPE_TAGS) or "(file)"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "unknown key"
    elif error["type"] == "missing":
        message = "required, but absent"
    return path, message


def _cross_reference_problems(settings: Settings) -> Problems:
    problems = security_problems(settings.kafka.security) + redis_problems(settings.redis)
    problems += _listener_problems(settings)
    for name, model in settings.models.items():
        found = _model_problems(f"models.{name}", model)
        space = settings.cell_space(name)
        if not found and space.cells_per_combination > settings.bounds.cells:
            needed = space.cells_per_combination
            problem = (
                f"model {name!r} needs at least {needed} (classes x score bins); raise it, or use fewer bins"
            )
            found = [("bounds.cells", problem)]
        problems += found
    return problems + vendor_problems(settings)


def _listener_problems(settings: Settings) -> Problems:
    taken: dict[int, str] = {}
    problems: Problems = []
    listeners = ["http", "monitoring"]
    if any(vendor.token_sha256 for vendor in settings.vendors.values()):
        listeners.append("vendor_api")
    for name in listeners:
        port = getattr(settings, name).port
        if port and port in taken:
            problems.append((f"{name}.port", f"is that of `{taken[port]}`; each has its own"))
        taken[port] = name
    return problems


def _model_problems(at: str, model: ModelSettings) -> Problems:
    problems = [
        (f"{at}.groupings.{name}", "this name is taken; `all` and `score_bin` are always there")
        for name in model.groupings
        if name in (ALL, SCORE_BIN)
    ]
    for name, grouping in model.groupings.items():
        problems += _superclass_problems(f"{at}.groupings.{name}", model, grouping)
    if model.costs is not None:
        problems += _cost_problems(f"{at}.costs", model, model.costs)
    for name, assessment in model.assessments.items():
        problems += _assessment_problems(f"{at}.assessments.{name}", model, assessment)
    return problems


def _cost_problems(at: str, model: ModelSettings, costs: CostSettings) -> Problems:
    problems: Problems = []
    if all(grouping.by != "predicted_class" for grouping in model.groupings.values()):
        problems.append((at, "costs are told per predicted class; this model has no grouping by it"))
    if len(model.classes) > CONFUSION_CLASSES:
        problems.append((at, f"costs are known of models with at most {CONFUSION_CLASSES:,} classes"))
    classes, seen = set(model.classes), set()
    for i, mistake in enumerate(costs.mistakes):
        pair = mistake.true, mistake.predicted
        named = {"true": mistake.true, "predicted": mistake.predicted}
        problems += [
            (f"{at}.mistakes.{i}.{key}", f"{name!r} is no class of the model")
            for key, name in named.items()
            if name not in classes
        ]
        if mistake.true == mistake.predicted:
            problems.append((f"{at}.mistakes.{i}", "a right prediction is no mistake, and costs nothing"))
        if pair in seen:
            problems.append((f"{at}.mistakes.{i}", "this mistake has a cost already"))
        seen.add(pair)
    return problems


def _assessment_problems(at: str, model: ModelSettings, assessment: AssessmentSettings) -> Problems:
    known = [ALL, SCORE_BIN, *model.groupings]
    if assessment.grouping not in known:
        return [
            (
                f"{at}.grouping",
                f"unknown grouping {assessment.grouping!r}; this model has {', '.join(known)}",
            )
        ]
    if assessment.metric not in METRICS[assessment.task]:
        possible = ", ".join(METRICS[assessment.task])
        return [(f"{at}.metric", f"{assessment.task} is about one of {possible}")]
    problems = _metric_problems(at, model, assessment)
    if assessment.task != "identification" and assessment.extreme is not None:
        problems.append((f"{at}.extreme", "is given with `task: identification`, and only then"))
    if (assessment.task == "comparison") != (assessment.between is not None):
        problems.append((f"{at}.between", "is given with `task: comparison`, and only then"))
    groups = _group_names(model, assessment.grouping)
    if assessment.task != "estimation" and groups is not None and len(groups) == 1:
        problems.append((f"{at}.grouping", f"{assessment.task} needs more than one group"))
    elif assessment.task == "identification" and groups is not None and assessment.top_m >= len(groups):
        problems.append((f"{at}.top_m", f"must be below the number of groups, {len(groups)}"))
    elif assessment.between is not None:
        problems += _between_problems(f"{at}.between", assessment.between, groups)
    return problems


def _metric_problems(at: str, model: ModelSettings, assessment: AssessmentSettings) -> Problems:
    metric, grouping = assessment.metric, model.groupings.get(assessment.grouping)
    if metric == "overall_accuracy" and assessment.grouping != ALL:
        return [(f"{at}.grouping", f"overall accuracy is of all traffic: `{ALL}`, or left out")]
    if metric not in ("confusion", "cost"):
        return []
    problems = []
    if grouping is None or grouping.by != "predicted_class":
        problems.append((f"{at}.grouping", f"{metric} needs a grouping with `by: predicted_class`"))
    if len(model.classes) > CONFUSION_CLASSES:
        problems.append(
            (f"{at}.metric", f"{metric} is known of models with at most {CONFUSION_CLASSES:,} classes")
        )
    if metric == "cost" and model.costs is None:
        problems.append((f"{at}.metric", "cost needs the model's `costs`"))
    return problems


def _between_problems(at: str, between: list[str], groups: list[str] | None) -> Problems:
    if between[0] == between[1]:
        return [(at, "the two groups must differ")]
    return [
        (at, f"{name!r} is no group of the grouping") for name in between if name not in (groups or between)
    ]


def _group_names(model: ModelSettings, grouping: str) -> list[str] | None:
    """Names of all groups that a grouping can have; None where traffic decides."""
    if grouping == ALL:
        return [ALL]
    if grouping == SCORE_BIN:
        return bin_names(model.score_edges)
    settings = model.groupings[grouping]
    if settings.by == "attribute":
        return None
    return model.classes if settings.by == "predicted_class" else list(settings.superclasses or {})


def _superclass_problems(at: str, model: ModelSettings, grouping: GroupingSettings) -> Problems:
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
