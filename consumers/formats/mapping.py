"""Records of another shape: their fields are found by paths, and written as a native message."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

import msgspec

from consumers.formats.event_headers import Headers
from service.domain.errors import BadMessage
from service.domain.field_mapping import PER_SECOND, FieldRule, RecordMapping
from service.domain.messages import FIRST_SECOND, LAST_SECOND, MOST_ATTRIBUTES
from service.domain.record_paths import RecordPath

encode_native = msgspec.json.Encoder(decimal_format="number").encode
"""JSON text of a value; numbers that are not finite are null, bytes are base64."""

_NAMES = frozenset({"model", "item_id", "request_id", "kind", "annotator", "payload_uri"})
_CLASSES = frozenset({"predicted_class", "true_class"})
_ABSENT = object()
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 256
"""Digits that a decimal number may have before or after its point where it is a name."""

_Take = Callable[["_Record"], Any]


class _Record:
    """What paths begin at."""

    __slots__ = ("headers", "key", "value")

    def __init__(self, value: Any, headers: Headers, key: bytes | None) -> None:
        self.value = value
        self.headers = headers
        self.key = key


class Mapper(Protocol):
    """Makes an object of a record of another shape."""

    def native(self, value: Any, headers: Headers, key: bytes | None) -> dict[str, Any]:
        """What is in a record, given its decoded value, its headers and its key."""


class WholeRecord:
    """Leaves a record as it is, so that somebody can look for fields in it."""

    def native(self, value: Any, headers: Headers, key: bytes | None) -> dict[str, Any]:
        """All parts of a record that paths begin at; without what is not text in its headers and key."""
        texts = {name: text for name, content in headers or () if (text := _text(content)) is not _ABSENT}
        whole = {"value": value, "headers": texts, "key": _text(key)}
        return {name: part for name, part in whole.items() if part is not _ABSENT}


class RecordMapper:
    """Writes records as native messages, by a mapping.

    Args:
        mapping: where the fields are.
        classes: of every model, in order, for probabilities by class name.
    """

    def __init__(self, mapping: RecordMapping, classes: Mapping[str, Sequence[str]]) -> None:
        self._classes = classes
        self._fields = [(field, rule, _taker(rule)) for field, rule in mapping.fields.items()]
        self._attributes = [(name, rule, _taker(rule)) for name, rule in mapping.attributes.items()]
        self._votes = [(name, rule, _taker(rule)) for name, rule in mapping.votes.items()]
        self._all = None if mapping.all_attributes is None else _taker(mapping.all_attributes)

    def native(self, value: Any, headers: Headers, key: bytes | None) -> dict[str, Any]:
        """The native message in a record.

        Args:
            value: of the record, decoded.
            headers: of the record.
            key: of the record.

        Raises:
            BadMessage: a required path leads nowhere, or to what the field cannot be.
        """
        record = _Record(value, headers, key)
        message: dict[str, Any] = {}
        for field, rule, take in self._fields:
            found = take(record)
            if found is not _ABSENT:
                message[field] = self._converted(field, rule, found, message)
            elif rule.is_required:
                raise _missing(field, rule)
        if attributes := self._attributes_of(record):
            message["attributes"] = attributes
        if votes := _named("votes", self._votes, record):
            message["votes"] = votes
        return message

    def _converted(self, field: str, rule: FieldRule, found: Any, message: Mapping[str, Any]) -> Any:
        if field in _NAMES or field in _CLASSES:
            name = _name(field, found)
            return rule.names.get(name, name)
        if field == "time":
            return _time(rule, found)
        if field == "probabilities":
            if isinstance(found, dict):
                return self._in_order(rule, found, message.get("model", ""))
            return found
        if field in ("score", "probability"):
            return finite(field, _number(field, found) if isinstance(found, str) else found)
        return found

    def _in_order(self, rule: FieldRule, found: Mapping[Any, Any], model: str) -> list[Any]:
        """Probabilities by class name, in the order of the model's classes."""
        classes = self._classes.get(model)
        if classes is None:
            raise BadMessage("unknown_model", "the configuration has no model of this name")
        texts = {_name("probabilities", name): each for name, each in found.items()}
        by_class = {rule.names.get(name, name): each for name, each in texts.items()}
        if len(by_class) < len(found):
            raise BadMessage("invalid_probabilities", "probabilities: several names stand for one class")
        if by_class.keys() != set(classes):
            raise BadMessage(
                "invalid_probabilities", "probabilities: the names must be those of the model's classes"
            )
        return [by_class[name] for name in classes]

    def _attributes_of(self, record: _Record) -> dict[str, str]:
        attributes: dict[str, str] = {}
        if self._all is not None and isinstance(entries := self._all(record), dict):
            for name, found in entries.items():
                if isinstance(found, str | int | Decimal) or (
                    isinstance(found, float) and math.isfinite(found)
                ):
                    attributes[str(name)] = _name("attributes", found)
        attributes |= _named("attributes", self._attributes, record)
        if len(attributes) > MOST_ATTRIBUTES:
            raise BadMessage("invalid_field", f"attributes: there are more than {MOST_ATTRIBUTES}")
        return attributes


def _taker(rule: FieldRule) -> _Take:
    """A function that takes what a rule is about from a record; `_ABSENT` if nothing is there, or null."""
    if not rule.paths:
        return lambda _: rule.value
    takers = [_path_taker(path) for path in rule.paths]
    if len(takers) == 1:
        return takers[0]

    def first(record: _Record) -> Any:
        return next((found for take in takers if (found := take(record)) is not _ABSENT), _ABSENT)

    return first


def _path_taker(path: RecordPath) -> _Take:
    match path.root:
        case "key":
            return lambda record: _text(record.key)
        case "headers":
            return lambda record: _text(dict(record.headers or ()).get(str(path.steps[0])))
    steps = path.steps

    def walk(record: _Record) -> Any:
        here: Any = record.value
        for step in steps:
            if isinstance(here, dict):
                here = here.get(step)
            elif isinstance(here, list) and isinstance(step, int) and step < len(here):
                here = here[step]
            else:
                return _ABSENT
        return _ABSENT if here is None else here

    return walk


def _text(content: bytes | None) -> Any:
    if content is None:
        return _ABSENT
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _ABSENT


def _name(field: str, found: Any) -> str:
    """Text of an id or a name: whole numbers are their digits."""
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, int | float | Decimal):
        return _digits(field, found)
    text = None
    if not isinstance(found, dict | list):  # which may be nested too deeply
        try:
            text = msgspec.to_builtins(found)
        except (TypeError, ValueError):
            text = None
    if not isinstance(text, str):
        raise BadMessage("invalid_field", f"{field}: expected a string or a number")
    return text


def _digits(field: str, found: float | Decimal) -> str:
    """Text of a number; the same for numbers that are equal, whatever their type."""
    if isinstance(found, int):
        try:
            return str(found)
        except ValueError:  # too long for Python
            raise BadMessage("invalid_field", f"{field}: the number is too long") from None
    if not math.isfinite(found):
        raise BadMessage("invalid_field", f"{field}: the number is not finite")
    if isinstance(found, float):
        return str(int(found)) if found.is_integer() else str(found)
    if not found:
        return "0"
    if abs(found.adjusted()) > _LONGEST_NUMBER:
        raise BadMessage("invalid_field", f"{field}: the number is too long")
    text = format(found, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _named(field: str, rules: Sequence[tuple[str, FieldRule, _Take]], record: _Record) -> dict[str, str]:
    """Attributes or votes, by their names."""
    named = {}
    for name, rule, take in rules:
        found = take(record)
        if found is not _ABSENT:
            text = _name(field, found)
            named[name] = rule.names.get(text, text)
        elif rule.is_required:
            raise _missing(f"{field}.{name}", rule)
    return named


def _number(field: str, text: str) -> float:
    # Python reads more as a number than JSON does: "nan", "1_0", and the digits of other scripts.
    if _NUMBER.fullmatch(text) is None:
        raise BadMessage("invalid_field", f"{field}: expected a number")
    return float(text)


def finite(field: str, found: Any) -> Any:
    """A number; JSON has none that are not finite, and null would mean that the field is absent.

    Raises:
        BadMessage: it is NaN or infinite.
    """
    if isinstance(found, float) and not math.isfinite(found):
        reason = "invalid_score" if field == "score" else "invalid_field"
        raise BadMessage(reason, f"{field}: the number is not finite")
    return found


def _time(rule: FieldRule, found: Any) -> Any:
    """A time as text, or what the native decoder takes or refuses."""
    if rule.unit is None or isinstance(found, datetime):
        if isinstance(found, int | float | Decimal):
            raise BadMessage("invalid_field", "time: it is a number, and the mapping gives no `unit`")
        return found
    if isinstance(found, str):
        found = _number("time", found)
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        raise BadMessage("invalid_field", "time: expected a number, as the mapping gives a `unit`")
    try:
        seconds = float(found) / PER_SECOND[rule.unit]
    except OverflowError:  # an integer of hundreds of digits
        seconds = math.inf
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise BadMessage("invalid_field", "time: it is out of range; check the `unit` of the mapping")
    return datetime.fromtimestamp(seconds, UTC)


def _missing(field: str, rule: FieldRule) -> BadMessage:
    paths = " or ".join(path.text for path in rule.paths)
    return BadMessage("missing_field", f"{field}: there is nothing at {paths}")
