"""Values in the wire format of a schema registry: a zero byte, the schema's id in four bytes, the content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from consumers.formats.avro_columns import AvroColumns
from service.domain.errors import BadMessage
from service.kafka.schema_registry import RegisteredSchema

_MAGIC = b"\0"
PREFIX_BYTES = 5


class _Reader(NamedTuple):
    """Reads values of a schema.

    Attributes:
        read: the content of a value that begins at an offset.
        columns: reads many values at once; None if they can only be read one by one.
    """

    read: Callable[[bytes, int], Any]
    columns: AvroColumns | None = None


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
        self._readers: dict[bytes, _Reader | BadMessage] = {}

    def read(self, value: bytes) -> Any:
        """The content of a value; of JSON its text, as `msgspec.Raw`. Call it if `is_registered`.

        Raises:
            BadMessage: the schema is unknown or cannot be used, or the content does not fit it.
            Unavailable: the registry cannot be asked now; try again.
        """
        return self._reader(value[1:PREFIX_BYTES]).read(value, PREFIX_BYTES)

    def columns(self, prefix: bytes) -> AvroColumns | None:
        """Reads many values with this prefix at once; None if they can only be read one by one.

        Raises:
            Unavailable: the registry cannot be asked now; try again.
        """
        try:
            return self._reader(prefix[1:]).columns
        except BadMessage:
            return None  # which is said of each of them when it is read

    def _reader(self, number: bytes) -> _Reader:
        reader = self._readers.get(number)
        if reader is None:
            reader = self._prepare(number)
        if isinstance(reader, BadMessage):
            raise BadMessage(reader.reason, reader.detail)
        return reader

    def _prepare(self, number: bytes) -> _Reader | BadMessage:
        if len(number) < PREFIX_BYTES - 1:
            raise BadMessage("malformed_record", "the value ends before the id of its schema does")
        reader: _Reader | BadMessage
        try:
            reader = _reader_of(self._schemas.schema(int.from_bytes(number)))
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


def _reader_of(schema: RegisteredSchema) -> _Reader:
    # The packages are optional, and loaded when there is something to read with them.
    match schema.kind:
        case "AVRO":
            from consumers.formats.avro import avro_columns, avro_reader  # noqa: PLC0415

            return _Reader(avro_reader(schema), avro_columns(schema))
        case "PROTOBUF":
            from consumers.formats.protobuf import protobuf_reader  # noqa: PLC0415

            return _Reader(protobuf_reader(schema))
        case "JSON":
            return _Reader(lambda value, begin: msgspec.Raw(value[begin:]))
    raise BadMessage("unsupported_schema", "its type is not AVRO, PROTOBUF or JSON")
