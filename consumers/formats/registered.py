"""Values in the wire format of a schema registry: a zero byte, the schema's id in four bytes, the content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from service.domain.errors import BadMessage
from service.kafka.schema_registry import RegisteredSchema

_MAGIC = b"\0"
_PREFIX_BYTES = 5

_Read = Callable[[bytes, int], Any]


class Schemas(Protocol):
    """Where schemas come from."""

    def schema(self, number: int) -> RegisteredSchema:
        """The schema of an id.

        Raises:
            BadMessage: there is none.
            Unavailable: it cannot be said now.
        """


class RegisteredValues:
    """Reads values of Avro, Protobuf and JSON Schema by the schemas that they name.

    Args:
        schemas: where these come from.
        cached: how many are kept, made ready for reading.
    """

    def __init__(self, schemas: Schemas, *, cached: int) -> None:
        self._schemas = schemas
        self._most = cached
        self._readers: dict[bytes, _Read | BadMessage] = {}

    def read(self, value: bytes) -> Any:
        """The content of a value; of JSON its text, as `msgspec.Raw`. Call it if `is_registered`.

        Raises:
            BadMessage: the schema is unknown or cannot be used, or the content does not fit it.
            Unavailable: the registry cannot be asked now; try again.
        """
        number = value[1:_PREFIX_BYTES]
        reader = self._readers.get(number)
        if reader is None:
            reader = self._prepare(number)
        if isinstance(reader, BadMessage):
            raise BadMessage(reader.reason, reader.detail)
        return reader(value, _PREFIX_BYTES)

    def _prepare(self, number: bytes) -> _Read | BadMessage:
        if len(number) < _PREFIX_BYTES - 1:
            raise BadMessage("malformed_record", "the value ends before the id of its schema does")
        reader: _Read | BadMessage
        try:
            reader = _reader(self._schemas.schema(int.from_bytes(number)))
        except BadMessage as error:
            if error.reason != "unsupported_schema":
                raise  # an unknown schema may be registered later
            reader = error
        while len(self._readers) >= self._most:
            del self._readers[next(iter(self._readers))]
        self._readers[number] = reader
        return reader


def is_registered(value: bytes) -> bool:
    """Whether a value begins as one of a registry does; no JSON text does."""
    return value[:1] == _MAGIC


def _reader(schema: RegisteredSchema) -> _Read:
    # The packages are optional, and loaded when there is something to read with them.
    match schema.kind:
        case "AVRO":
            from consumers.formats.avro import avro_reader  # noqa: PLC0415

            return avro_reader(schema)
        case "PROTOBUF":
            from consumers.formats.protobuf import protobuf_reader  # noqa: PLC0415

            return protobuf_reader(schema)
        case "JSON":
            return lambda value, begin: msgspec.Raw(value[begin:])
    raise BadMessage("unsupported_schema", "its type is not AVRO, PROTOBUF or JSON")
