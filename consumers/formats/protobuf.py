"""Values of Protobuf, read by the .proto text that a registry returns, which protoc compiles once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Error

from consumers.formats.expansion import check_expansion
from consumers.formats.protobuf_schema import MAIN, compile_schema, examine
from consumers.formats.protobuf_wire import WireFields, too_many_fields, varint
from service.domain.errors import BadMessage
from service.kafka.schema_registry import RegisteredSchema

_MOST_INDEXES = 32
_LEAST_ROOM = 10_000
_ROOM_PER_BYTE = 2
_EMPTY_IS_ABSENT = (
    FieldDescriptor.CPPTYPE_STRING,
    FieldDescriptor.CPPTYPE_MESSAGE,
    FieldDescriptor.CPPTYPE_FLOAT,
    FieldDescriptor.CPPTYPE_DOUBLE,
)
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_STRUCTS = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}


def protobuf_reader(schema: RegisteredSchema) -> Callable[[bytes, int], Any]:
    """A function that reads a value whose message indexes begin at an offset.

    It raises `BadMessage` for bytes that do not fit the schema. Fields have the names of the .proto text,
    enums those of their values. What is empty and has no presence of its own is absent: text, a list, a map,
    and a floating-point number that is 0. An integer that is 0 is there, because it may be a class.

    Raises:
        BadMessage: the schema cannot be used.
    """
    pool = descriptor_pool.DescriptorPool()
    try:
        files = compile_schema(schema).file
        longest_name = examine(files, reserved=_WELL_KNOWN)
        for file in files:
            pool.Add(file)
        types = pool.FindFileByName(MAIN).message_types_by_name
        # protoc writes files after those that they import, so this one last.
        roots = [types[message.name] for message in files[-1].message_type]
    except (Error, TypeError, ValueError, LookupError, RecursionError) as error:
        raise BadMessage(
            "unsupported_schema", f"the registered .proto cannot be used ({type(error).__name__})"
        ) from None
    classes: dict[tuple[int, ...], Any] = {}
    converter = _Converter()
    wire = WireFields(pool)

    def read(value: bytes, begin: int) -> Any:
        indexes, begin = _message_indexes(value, begin)
        found = classes.get(indexes)
        if found is None:
            found = classes[indexes] = message_factory.GetMessageClass(_message_type(roots, indexes))
        room = _LEAST_ROOM + _ROOM_PER_BYTE * len(value)
        content = value[begin:]
        try:
            wire.check(content, found.DESCRIPTOR, room=room)
            fields = converter.convert(found.FromString(content), room=room)
        except (Error, ValueError, LookupError, ArithmeticError, RecursionError):
            raise BadMessage("malformed_record", "the value does not fit its Protobuf schema") from None
        check_expansion(fields, value_bytes=len(value), most_names=room, longest_name=longest_name)
        return fields

    return read


def _message_indexes(value: bytes, begin: int) -> tuple[tuple[int, ...], int]:
    """Which message of the file a value is, as indexes from the outermost one, and where the value begins."""
    count, begin = _zigzag(value, begin)
    if count == 0:
        return (0,), begin
    if not 0 < count <= _MOST_INDEXES:
        raise _wrong_indexes()
    indexes = []
    for _ in range(count):
        index, begin = _zigzag(value, begin)
        indexes.append(index)
    return tuple(indexes), begin


def _zigzag(value: bytes, begin: int) -> tuple[int, int]:
    try:
        number, end = varint(value, begin)
    except (ValueError, IndexError):
        raise _wrong_indexes() from None
    return (number >> 1) ^ -(number & 1), end


def _message_type(roots: list[Any], indexes: tuple[int, ...]) -> Any:
    types, found = roots, None
    for index in indexes:
        if not 0 <= index < len(types):
            raise _wrong_indexes()
        found = types[index]
        types = found.nested_types
    return found


def _wrong_indexes() -> BadMessage:
    return BadMessage("malformed_record", "its message indexes name no message of the .proto")


class _Room:
    """How many more fields a value may have: a message of no bytes has all those whose value is 0."""

    def __init__(self, fields: int) -> None:
        self._left = fields

    def take(self, fields: int) -> None:
        self._left -= fields
        if self._left < 0:
            raise too_many_fields()


_Convert = Callable[[Any, _Room], Any]


class _Converter:
    """Makes Python values of messages, by a plan of each type."""

    def __init__(self) -> None:
        self._plans: dict[str, list[tuple[str, bool, bool, _Convert | None]]] = {}

    def convert(self, message: Any, *, room: int) -> Any:
        """The fields of a message by their names; or the value of a well-known type."""
        return self._of_message(message.DESCRIPTOR)(message, _Room(room))

    def _of_message(self, descriptor: Any) -> _Convert:
        return _WELL_KNOWN.get(descriptor.full_name, self._fields)

    def _fields(self, message: Any, room: _Room) -> dict[str, Any]:
        descriptor = message.DESCRIPTOR
        plan = self._plans.get(descriptor.full_name)
        if plan is None:
            plan = self._plans[descriptor.full_name] = [self._plan(field) for field in descriptor.fields]
        room.take(len(plan))
        found = {}
        for name, has_presence, keeps_empty, convert in plan:
            if has_presence:
                if not message.HasField(name):
                    continue
                value = getattr(message, name)
            else:
                value = getattr(message, name)
                if not keeps_empty and not value:
                    continue
            found[name] = value if convert is None else convert(value, room)
        return found

    def _plan(self, field: Any) -> tuple[str, bool, bool, _Convert | None]:
        """Name, whether it has presence, whether it is kept if it is empty, and how it is converted."""
        convert = self._of_one(field)
        if not field.is_repeated:
            is_integer = field.cpp_type not in _EMPTY_IS_ABSENT
            return field.name, field.has_presence, is_integer, convert
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            value_of = self._of_one(entry.fields_by_name["value"])
            return field.name, False, False, lambda values, room: _map(values, value_of, room)
        return field.name, False, False, lambda values, room: _list(values, convert, room)

    def _of_one(self, field: Any) -> _Convert | None:
        if field.message_type is not None:
            return self._of_message(field.message_type)
        if field.enum_type is not None:
            names: Mapping[int, str] = {
                number: value.name for number, value in field.enum_type.values_by_number.items()
            }
            return lambda number, _: names.get(number, number)
        return None


def _list(values: Any, convert: _Convert | None, room: _Room) -> list[Any]:
    return list(values) if convert is None else [convert(value, room) for value in values]


def _map(values: Any, convert: _Convert | None, room: _Room) -> dict[str, Any]:
    room.take(len(values))
    return {
        str(key).lower() if isinstance(key, bool) else str(key): value
        if convert is None
        else convert(value, room)
        for key, value in values.items()
    }


def _struct_value(message: Any, room: _Room) -> Any:
    """A JSON value, as `google.protobuf.Struct` and its parts have it."""
    match message.DESCRIPTOR.name:
        case "Struct":
            return {name: _struct_value(value, room) for name, value in message.fields.items()}
        case "ListValue":
            return [_struct_value(value, room) for value in message.values]
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    value = getattr(message, kind)
    return _struct_value(value, room) if kind in ("struct_value", "list_value") else value


_WELL_KNOWN: dict[str, _Convert] = {
    "google.protobuf.Timestamp": lambda message, _: message.ToDatetime(tzinfo=UTC),
    "google.protobuf.Duration": lambda message, _: message.ToJsonString(),
    "google.protobuf.FieldMask": lambda message, _: message.ToJsonString(),
    **dict.fromkeys(_STRUCTS, _struct_value),
    **{f"google.protobuf.{name}Value": lambda message, _: message.value for name in _WRAPPERS},
}
"""How messages of well-known types become values."""
