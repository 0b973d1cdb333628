"""Reads the settings: one YAML file and the `CREDENCE_*` environment, once.

An environment variable overrides the key that its name spells, with two underscores
between the levels: `CREDENCE_REDIS__URL` is `redis.url`. With `_FILE` behind the name
the value is read from that file, for secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from service.config.document import Document, read_document, where
from service.config.partial_validation import all_problems, problems_beside
from service.config.problem_words import described
from service.config.settings import Settings
from service.config.types import Problems
from service.domain.errors import ConfigurationError

ENVIRONMENT_PREFIX = "CREDENCE_"

FILE_NAME_KEYS = frozenset({"ca_file", "certificate_file", "file", "key_file", "token_ca_file", "token_file"})
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
        environment: usually `os.environ`; only `CREDENCE_*` is used.

    Raises:
        ConfigurationError: the file cannot be read, or a key is unknown or has an impossible value; it has
            every problem, by the path and the line of its key.
    """
    return settings_of(read_document(path), str(path), environment)


def settings_of(document: Document, source: str, environment: Mapping[str, str]) -> Settings:
    """Settings of a document that was read from `source`, and of an environment.

    Raises:
        ConfigurationError: as `load_settings`.
    """
    content = document.content
    variables, problems = _overlay_environment(content, environment)
    problems = [*document.duplicates, *problems]
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        errors = error.errors()
        problems += list((dict(problems_beside(content, errors)) | dict(described(errors))).items())
    else:
        problems += all_problems(settings)
        if not problems:
            return settings
    sections = {path.rpartition(".")[0]: variable for path, variable in variables.items()}
    places = sections | {path: f"line {line}" for path, line in document.lines.items()} | variables
    raise ConfigurationError(list(dict.fromkeys(problems)), source, places)


def _overlay_environment(
    document: dict[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, str], Problems]:
    """Put the values of variables into a document; returns the variable of every path, and problems."""
    variables: dict[str, str] = {}
    problems: Problems = []
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in RESERVED_VARIABLES:
            continue
        try:
            variables[_overlay(document, variable, environment)] = variable
        except _UnusableVariableError as error:
            problems.append((variable, str(error)))
    return variables, problems


class _UnusableVariableError(Exception):
    """A variable sets nothing; the message says why."""


def _overlay(document: dict[str, Any], variable: str, environment: Mapping[str, str]) -> str:
    """Put the value of one variable into a document; the path of its key."""
    names_file = variable.rpartition("__")[2].lower() in FILE_NAME_KEYS
    base = variable if names_file else variable.removesuffix(_FILE_SUFFIX)
    if base != variable and base in environment:
        raise _UnusableVariableError(f"{base} is set too; set one of them")
    text = environment[variable] if base == variable else _file_content(environment[variable])
    path = [part.lower() for part in base.removeprefix(ENVIRONMENT_PREFIX).split("__")]
    target = document
    for part in path[:-1]:
        child = target.get(part)
        if child is None:
            child = target[part] = {}
        if not isinstance(child, dict):
            raise _UnusableVariableError(f"`{part}` is not a section, so it has no keys below it")
        target = child
    try:
        target[path[-1]] = _value_of(path[-1], text)
    except (yaml.YAMLError, ValueError) as error:
        raise _UnusableVariableError(f"is not valid YAML{where(error)}") from None
    return ".".join(path)


def _value_of(key: str, text: str) -> Any:
    if key in WORD_LIST_KEYS:
        return text.split()
    return text if key in PLAIN_TEXT_KEYS else yaml.safe_load(text)


def _file_content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise _UnusableVariableError(f"names a file that cannot be read: {why}") from None
