"""Messages about invalid values, for operators: those of pydantic are for programmers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from service.config.assessments import ASSESSMENTS
from service.config.schema_keys import unknown_key
from service.config.types import Problems

_KEY = "[key]"
"""Last part of the path if the name of a mapping's entry is invalid, not its value."""

_EXAMPLES = {"true or false": ': "yes", "no"'}
"""Text in quotes that YAML would read as something else."""

_WANTED = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_unicode": "must be text in Unicode",
    "invalid_key": "a key must be text",
    **dict.fromkeys(
        (
            "datetime_type",
            "datetime_parsing",
            "datetime_from_date_parsing",
            "datetime_object_invalid",
            "timezone_aware",
        ),
        "must be a time as RFC 3339 with an offset, such as 2026-01-31T12:00:00Z",
    ),
}
"""What a value must be, by type of error; what it is follows."""


@dataclass(frozen=True)
class Notation:
    """The notation of the document with the errors.

    Attributes:
        wanted: what a value must be, by the type of error, where that depends on the notation.
        null: message about a value that is null.
        misread: message about a value of another kind where text is required.
        mapping: name of a mapping.
        unknown_key: message about an unknown key at a path.
    """

    wanted: Mapping[str, str]
    null: str
    misread: str
    mapping: str
    unknown_key: Callable[[Sequence[str | int]], str]


_SECTION = "must be a section: lines of `key: value`, indented below the key"
YAML = Notation(
    wanted={
        "list_type": "must be a list, such as [a, b]",
        "dict_type": "must be a mapping: lines of `name: value`, indented below the key",
        "model_type": _SECTION,
        "model_attributes_type": _SECTION,
    },
    null=", but is empty; give it a value, indent what belongs to it, or remove it",
    misread=", but YAML reads it as {kind}; put it in quotes{example}",
    mapping="a mapping",
    unknown_key=unknown_key,
)
"""A configuration."""

JSON = Notation(
    wanted={
        "list_type": "must be a list",
        **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    },
    null=", but is null",
    misread=", but is {kind}",
    mapping="an object",
    unknown_key=lambda _: "unknown key; remove it, or correct its name",
)
"""The body of a call."""

_LIMITS: dict[str, Callable[[dict[str, Any]], str]] = {
    "greater_than": lambda limits: f"must be more than {_number(limits['gt'])}",
    "greater_than_equal": lambda limits: f"must be at least {_number(limits['ge'])}",
    "less_than": lambda limits: f"must be less than {_number(limits['lt'])}",
    "less_than_equal": lambda limits: f"must be at most {_number(limits['le'])}",
}
_LENGTHS: dict[str, Callable[[dict[str, Any]], str]] = {
    "too_short": lambda limits: f"must have at least {_entries(limits['min_length'])}",
    "too_long": lambda limits: f"must have at most {_entries(limits['max_length'])}",
    "string_too_short": lambda limits: f"must have at least {_characters(limits['min_length'])}",
    "string_too_long": lambda limits: f"must have at most {_characters(limits['max_length'])}",
}


def described(errors: Iterable[Any], notation: Notation = YAML) -> Problems:
    """Path and problem of all errors; one for a value that matches none of several types."""
    problems: dict[str, str] = {}
    for error in _each_once(errors):
        path, problem = _described(error, notation)
        problems.setdefault(".".join(map(str, path)), problem)
    return list(problems.items())


def _each_once(errors: Iterable[Any]) -> Iterable[Any]:
    """Without the errors of the type that a value of several types is not."""
    for error in errors:
        match error["loc"]:
            case ("models", _, "score_bins", "int") if isinstance(error["input"], list):
                continue
        yield error


def _described(error: Any, notation: Notation) -> tuple[list[str | int], str]:
    path, kind = list(error["loc"]), error["type"]
    problem = _problem(error, path, notation)
    if kind == "union_tag_invalid":
        path.append("task")
    # Where a value may be of several types, the path has the one that it was taken for.
    match path:
        case ["models", _, "score_bins", _, *entry]:
            del path[3]
            if not entry:
                problem = f"must be a whole number, or a list of numbers{_is(error['input'], notation)}"
        case ["models", _, "labels_per_item", "max_error", _]:
            del path[4]
            problem = f"must be more than 0 and less than 0.5, or `learned`{_is(error['input'], notation)}"
        case ["models", _, "assessments", _, task, *_] if task in ASSESSMENTS and kind != "union_tag_invalid":
            del path[4]
    if path and path[-1] == _KEY:
        return path[:-1], f"as a name: {problem}"
    return path, problem


def _problem(error: Any, path: list[str | int], notation: Notation) -> str:
    kind, given, limits = error["type"], error["input"], error.get("ctx", {})
    if kind in _LIMITS:
        return f"{_LIMITS[kind](limits)}, but is {_number(given)}"
    if kind in _LENGTHS:
        length = limits.get("actual_length", len(given) if isinstance(given, str) else None)
        return f"{_LENGTHS[kind](limits)}, but has {'more' if length is None else length or 'none'}"
    match kind:
        case "value_error":
            problem = str(limits["error"])
        case "missing":
            problem = "required, but missing; add it"
        case "extra_forbidden":
            problem = notation.unknown_key(path)
        case "union_tag_invalid":
            *others, last = (f"`{task}`" for task in ASSESSMENTS)
            problem = f"must be {', '.join(others)} or {last}"
        case "literal_error":
            known = str(limits["expected"]).replace("'", "`")
            problem = f"must be {known}{_is(given, notation, wants_text=True)}"
        case "string_pattern_mismatch":
            problem = "must start with a letter or a digit, followed by letters, digits, `.`, `_` or `-`"
        case _:
            wanted = notation.wanted.get(kind) or _WANTED.get(kind, f"cannot be used ({kind})")
            problem = f"{wanted}{_is(given, notation, wants_text=kind in _OF_TEXT)}"
    return problem


_OF_TEXT = {"string_type", "string_unicode", "invalid_key", "datetime_parsing", "datetime_from_date_parsing"}
"""Types of errors of values that must be text."""


def _is(given: Any, notation: Notation, *, wants_text: bool = False) -> str:
    """What kind of value it is, and what to do about it; never text, which may be a secret."""
    match given:
        case None:
            return notation.null
        case date():
            kind, example = "a date", ""
        case bool():
            kind, example = "true or false", ': "yes", "no"'
        case int() | float():
            kind, example = "a number", ""
        case _:
            kinds: dict[type, str] = {str: "text", list: "a list", dict: notation.mapping}
            kind = kinds.get(type(given), "something else")
            return "" if wants_text and isinstance(given, str) else f", but is {kind}"
    if wants_text:
        return notation.misread.format(kind=kind, example=example)
    return f", but is {kind if isinstance(given, date) else str(_number(given)).lower()}"


def _number(value: Any) -> str:
    """A number as it is written in a configuration."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _characters(count: int) -> str:
    return f"{count:,} {'character' if count == 1 else 'characters'}"
