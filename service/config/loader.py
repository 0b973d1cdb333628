"""Reads the settings: one YAML file and the `CREDENCE_*` environment, once.

An environment variable overrides the key that its name spells, with two underscores
between the levels: `CREDENCE_REDIS__URL` is `redis.url`. With `_FILE` behind the name
the value is read from that file, for secrets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from service.config.assessments import ASSESSMENTS, tasks_accepting
from service.config.deployment_validation import deployment_problems
from service.config.model_validation import model_problems
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

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
    models = (model_problems(settings, name) for name in settings.models)
    if problems := [*chain.from_iterable(models), *deployment_problems(settings)]:
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
    path, message = list(error["loc"]), str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "extra_forbidden":
            message = "unknown key"
        case "missing":
            message = "required, but absent"
        case "union_tag_invalid":
            path.append("task")
            message = f"Input should be {' or '.join(error['ctx']['expected_tags'].rsplit(', ', 1))}"
    # Where a value may be of several types, pydantic's path has the one that it was taken for.
    match path:
        case ["models", _, "score_bins", _, *_]:
            del path[3]
        case ["models", _, "assessments", _, task, *keys] if task in ASSESSMENTS:
            del path[4]
            if error["type"] == "extra_forbidden" and len(keys) == 1 and (tasks := tasks_accepting(keys[0])):
                message = f"not accepted with `task: {task}`, only with {', '.join(tasks)}"
    return ".".join(map(str, path)) or "(file)", message
