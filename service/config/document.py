"""The configuration file as a document: its keys and values, and the line of every key.

Words for what is wrong with a file or its YAML are here. The parser's own are not shown: they may quote a
value, and so a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from service.config.types import Problems
from service.domain.errors import ConfigurationError, UnusableConfigurationError

FILE = "(file)"
"""Path of what is wrong with the file as a whole."""

_OTHER_FILE = "name another one with --config or CREDENCE_CONFIG"

_SYNTAX = {
    "mapping values are not allowed": "a `:` where none can be; check the indentation, and put a value "
    'that contains ": " in quotes',
    "'\\t' that cannot start any token": "a tab; indent with spaces",
    "expected <block end>": "this line is indented differently from the keys of its section",
    "could not find expected ':'": "a key without `:`; write `key: value`",
    "expected ',' or": "a bracket opened before is not closed; close it, or add a comma",
    "unexpected end of stream": "a quote opened before is not closed",
    "undefined alias": "a value that begins with `*` refers to an anchor; put it in quotes if it is text",
    "cannot start any token": "a value that begins with a special character; put it in quotes",
    "a constructor for the tag": "a value that begins with `!` is a tag; put it in quotes if it is text",
    "unhashable key": "a key must be text, not a list or a mapping",
    "does not exist": "a number, date or time that does not exist; put it in quotes if it is text",
}
"""What PyYAML says, by parts of its sentences, and what we say."""

_ANY_SYNTAX = "check quotes, brackets and indentation there"


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        content: keys and values.
        lines: of every key, by its path.
        duplicates: keys that are given more than once.
    """

    content: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)
    duplicates: Problems = field(default_factory=list)


def read_document(path: Path) -> Document:
    """The document in a file.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        problem = f"does not exist; {_OTHER_FILE}, or write it: docs/configuration.md has an example"
        raise UnusableConfigurationError(path, problem) from None
    except IsADirectoryError:
        problem = f"is a directory, not a file; {_OTHER_FILE}, such as {path / 'credence.yaml'}"
        raise UnusableConfigurationError(path, problem) from None
    except UnicodeDecodeError:
        raise UnusableConfigurationError(
            path, f"is not a text file in UTF-8; {_OTHER_FILE}, or save it as UTF-8"
        ) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        problem = f"cannot be read: {why}; make it readable for this user, or {_OTHER_FILE}"
        raise UnusableConfigurationError(path, problem) from None
    return parse_document(text, path)


def parse_document(text: str, source: object) -> Document:
    """The document of a text; `source` names it in errors.

    Raises:
        ConfigurationError: it is not YAML, or not a mapping.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        # Before its construction, which merges keys of anchors into nodes.
        keys = [] if node is None else list(_keys(node, (), set()))
        content = None if node is None else loader.construct_document(node)
    except yaml.reader.ReaderError:
        problem = f"is not a text file: it has control characters; {_OTHER_FILE}"
        raise UnusableConfigurationError(source, problem) from None
    except (yaml.YAMLError, RecursionError) as error:
        # Not its text, and not as the cause: both quote the line, which may hold a secret.
        raise ConfigurationError([(FILE, f"is not valid YAML{where(error)}")], str(source)) from None
    if content is None:
        problem = "is empty; it needs `models` at least: docs/configuration.md has an example"
        raise UnusableConfigurationError(source, problem)
    if not isinstance(content, dict):
        problem = "must be a mapping at the top level: lines of `key: value`, such as `models:`"
        raise ConfigurationError([(FILE, problem)], str(source))
    return Document(content, {path: lines[0] for path, lines in keys}, list(_duplicates(keys)))


def where(error: Exception) -> str:
    """Line and column of an error of the parser, and what is wrong there in our words."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    mark, problem = error.problem_mark, error.problem or ""
    ours = next((words for part, words in _SYNTAX.items() if part in problem), _ANY_SYNTAX)
    return f" at line {mark.line + 1}, column {mark.column + 1}: {ours}"


class _Loader(yaml.SafeLoader):
    """A SafeLoader that names the place of a value that cannot be constructed, such as February 30."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except ValueError:
            problem = "does not exist"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _keys(node: yaml.Node, path: tuple[str, ...], visited: set[int]) -> Iterator[tuple[str, list[int]]]:
    """Every key of a node by its path, with the lines that give it; of an anchor where it is defined."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, entry in enumerate(node.value):
            yield ".".join((*path, str(i))), [entry.start_mark.line + 1]
            yield from _keys(entry, (*path, str(i)), visited)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[tuple[str, str], list[int]] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                lines.setdefault((key.tag, key.value), []).append(key.start_mark.line + 1)
                yield from _keys(value, (*path, key.value), visited)
        for (_, name), at in lines.items():
            yield ".".join((*path, name)), at


def _duplicates(keys: list[tuple[str, list[int]]]) -> Iterator[tuple[str, str]]:
    for path, lines in keys:
        if len(lines) > 1:
            numbers = ", ".join(map(str, lines[:-1]))
            yield path, f"duplicate key, on lines {numbers} and {lines[-1]}; keep one of them"
