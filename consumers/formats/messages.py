"""Native JSON of a topic's records: values of a registry, mapped records, and CloudEvents in structured mode.

Each of them may contain another one: an event's data may be a value of a registry, which a mapping describes.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from consumers.formats.decode_errors import guarded
from consumers.formats.event_headers import EVENTS, Headers, check_event, event_time
from consumers.formats.mapping import Mapper, encode_native, finite
from consumers.formats.native import ABSENT, EventArray, attempt
from consumers.formats.registered import RegisteredValues, is_registered
from consumers.formats.registered_records import PlainRecords, places_of_one_schema, plain_records
from service.domain.errors import BadMessage
from service.domain.messages import CLOUDEVENTS_VERSION, FIRST_SECOND, LAST_SECOND

_Message = tuple[bytes | msgspec.Raw, bytes | msgspec.Raw | BadMessage]
"""An event, and the native message in it or why there is none."""

_EVENT = b"application/cloudevents+json"
_BATCH = b"application/cloudevents-batch+json"

_NUMBERS = frozenset({"score", "probability"})
_RECORDS = frozenset({"attributes", "votes", "prediction"})
"""Fields of messages that are numbers, and that have fields of their own."""

_MOST_WRITTEN = 64
_LEAST_WRITTEN = 65_536
"""How many times as long as a value, or how long, its JSON text may be."""


class _Event(msgspec.Struct, gc=False):
    specversion: str
    type: str
    time: str | None = None
    data: msgspec.Raw = ABSENT
    data_base64: str | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_value = msgspec.json.Decoder(msgspec.Raw).decode
_decode_anything = msgspec.json.Decoder().decode


class TopicMessages:
    """Rewrites records of one topic as native JSON.

    Args:
        event_type: of the topic's native messages, as CloudEvents name it.
        registered: reads values of a schema registry; None if none is configured.
        mapper: finds fields in records of another shape; None if records have the fields of the contract.
        formats: what the data of an event may be besides.
    """

    def __init__(
        self,
        event_type: str,
        *,
        registered: RegisteredValues | None = None,
        mapper: Mapper | None = None,
        formats: Sequence[Callable[[Headers, bytes], bytes | None]] = (),
    ) -> None:
        self._event_type = event_type
        self._type = event_type.encode()
        self._registered = registered
        self._prefix = b'{"specversion":"%b","type":%b,"data":' % (
            CLOUDEVENTS_VERSION.encode(),
            encode_native(event_type),
        )
        self._mapper = mapper
        self._formats = formats

    def __call__(self, headers: Headers, value: bytes) -> bytes | None:
        """Native JSON of a record; None if it is neither of a registry, nor mapped, nor an event.

        Raises:
            BadMessage: nothing in it can be used.
            Unavailable: the registry cannot be asked now.
        """
        return self._text(headers, value, None)

    def plain_records(
        self, records: Sequence[Any], values: Sequence[bytes], *, message_bytes: int
    ) -> PlainRecords | None:
        """Those of a batch's records that can be read as columns; None if they are too few.

        Raises:
            Unavailable: the registry cannot be asked now; try again.
        """
        if self._registered is None or self._mapper is not None:
            return None
        places = places_of_one_schema(
            records, values, message_bytes=message_bytes, event_type=self._event_type
        )
        return plain_records(self._registered, self, records, values, places) if places else None

    def rewrite(self, record: Any) -> bytes:
        """Native JSON of a record of Kafka, which may be native already.

        Raises:
            BadMessage: nothing in it can be used.
            Unavailable: the registry cannot be asked now.
        """
        headers, value = record.headers or (), record.value or b""
        text = self._text(headers, value, record.key)
        if text is None:
            check_event(headers, self._event_type)
            return bytes(value)
        return text

    def _text(self, headers: Headers, value: bytes, key: bytes | None) -> bytes | None:
        if headers:
            content_type = (dict(headers).get("content-type") or b"").strip().lower()
            if content_type.startswith(EVENTS):
                return self._events(content_type, headers, value, key)
        return self._message(headers, value, key)

    def _message(self, headers: Headers, value: bytes, key: bytes | None) -> bytes | None:
        mapper = self._mapper
        if mapper is not None and headers and dict(headers).get("ce_type") == self._type:
            mapper = None
        if mapper is None:
            if self._registered is None or not is_registered(value):
                return None
            check_event(headers, self._event_type)
            return _bounded(_as_text(_contract_fields(self._registered.read(value))), value)
        _check_version(headers)
        found = self._registered.read(value) if self._registered and is_registered(value) else value
        if isinstance(found, bytes | msgspec.Raw):
            found = attempt(_decode_anything, found)
        if isinstance(found, BadMessage):
            raise found
        if not isinstance(found, dict):
            raise BadMessage(
                "invalid_field", "expected an object: the mapping takes one message from a record"
            )
        return _bounded(_as_text(mapper.native(found, headers, key)), value)

    def _events(self, content_type: bytes, headers: Headers, value: bytes, key: bytes | None) -> bytes:
        """The messages in a CloudEvent or a batch of them: one, or an array.

        A bad event of a batch is refused alone, for its own reason.
        """
        if content_type.startswith(_BATCH) and value.lstrip()[:1] == b"[":
            elements = attempt(_decode_elements, value)
            if isinstance(elements, BadMessage):
                raise elements
            return EventArray.of([one for event in elements for one in self._of_batch(event, headers, key)])
        if not content_type.startswith((_EVENT, _BATCH)):
            raise BadMessage("unsupported_event", "content-type: events in structured mode must be in JSON")
        is_array, texts = self._event(value, headers, key)
        return EventArray.of(self._events_of(texts)) if is_array else bytes(texts[0])

    def _of_batch(self, event: msgspec.Raw, headers: Headers, key: bytes | None) -> Sequence[_Message]:
        try:
            is_array, texts = guarded(self._event, event, headers, key)
        except BadMessage as error:
            return [(event, error)]
        return self._events_of(texts) if is_array else [(event, texts[0])]

    def _events_of(self, texts: Sequence[bytes | msgspec.Raw]) -> Sequence[_Message]:
        """Native messages that came in one event, each with an event of its own, which can be replayed."""
        return [(self._prefix + text + b"}", text) for text in texts]

    def _event(
        self, text: bytes | msgspec.Raw, headers: Headers, key: bytes | None
    ) -> tuple[bool, Sequence[bytes | msgspec.Raw]]:
        """The messages in an event, and whether its data is an array of them."""
        attributes = attempt(_decode_object, text)
        if isinstance(attributes, BadMessage):
            raise attributes
        if "specversion" not in attributes:
            raise BadMessage("missing_field", "specversion is missing in the event")
        event = attempt(_decode_event, text)
        if isinstance(event, BadMessage):
            raise event
        inner_headers = _as_headers(attributes, headers)
        inner = self._data(event, inner_headers, key)
        return _with_time(inner, event_time(inner_headers))

    def _data(self, event: _Event, headers: Headers, key: bytes | None) -> bytes:
        if event.data_base64 is not None:
            try:
                data = b64decode(event.data_base64, validate=True)
            except (binascii.Error, ValueError):
                raise BadMessage("invalid_field", "data_base64: expected base64") from None
        elif event.data:
            data = bytes(event.data)
        else:
            raise BadMessage("missing_field", "data is missing in the event")
        for rewrite in (lambda headers, data: self._message(headers, data, key), *self._formats):
            if (text := rewrite(headers, data)) is not None:
                return text
        check_event(headers, self._event_type)
        return data


def _as_headers(attributes: dict[str, msgspec.Raw], headers: Headers) -> Headers:
    """Attributes of an event as the headers that they are in binary mode, with the record's other headers."""
    found = [(name, content) for name, content in headers if name != "content-type"]
    for name, text in attributes.items():
        if name not in ("data", "data_base64"):
            content = attempt(_decode_anything, text)
            if isinstance(content, str):
                found.append((f"ce_{name}", content.encode()))
            elif isinstance(content, bool | int | float):
                found.append((f"ce_{name}", bytes(text)))  # 42 and true are written as in a header
    return found


def _with_time(text: bytes, seconds: float | None) -> tuple[bool, Sequence[bytes | msgspec.Raw]]:
    """Messages with the time of their event where they have none; and whether they were in an array."""
    is_array = text.lstrip()[:1] == b"["
    # In base64 may be any bytes: what is no JSON value would become something else within an array of others.
    found = attempt(_decode_elements if is_array else _decode_value, text)
    if isinstance(found, BadMessage):
        raise found
    elements = found if is_array else [found]
    if seconds is None or not FIRST_SECOND <= seconds <= LAST_SECOND:
        return is_array, elements
    time = msgspec.Raw(encode_native(datetime.fromtimestamp(seconds, UTC)))
    timed = []
    for element in elements:
        fields = attempt(_decode_object, element)
        if isinstance(fields, dict) and bytes(fields.get("time", ABSENT)) in (b"", b"null"):
            timed.append(encode_native(fields | {"time": time}))
        else:
            timed.append(element)
    return is_array, timed


def _contract_fields(found: Any, depth: int = 2) -> Any:
    """A message without the fields that are null: to Avro they are absent, as in the records in it.

    Raises:
        BadMessage: a number is not finite, which JSON would call null.
    """
    if not isinstance(found, dict):
        return found
    fields = {name: value for name, value in found.items() if value is not None}
    for name in _NUMBERS & fields.keys():
        finite(name, fields[name])
    if depth:
        for name in _RECORDS & fields.keys():
            fields[name] = _contract_fields(fields[name], depth - 1)
    return fields


def _as_text(found: Any) -> bytes:
    if isinstance(found, msgspec.Raw):
        return bytes(found)
    try:
        return encode_native(found)
    except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError):
        raise BadMessage("malformed_record", "it contains what JSON cannot say") from None


def _bounded(text: bytes, value: bytes) -> bytes:
    if len(text) > max(_LEAST_WRITTEN, _MOST_WRITTEN * len(value)):
        raise BadMessage("message_too_large", "the value is very long when it is written as JSON")
    return text


def _check_version(headers: Headers) -> None:
    for name, content in headers or ():
        if name == "ce_specversion" and content != CLOUDEVENTS_VERSION.encode():
            raise BadMessage("unsupported_event", f"ce_specversion must be {CLOUDEVENTS_VERSION}")
