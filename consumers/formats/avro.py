"""Values of Avro, read by the schema that they were written with.

A schema is refused if it could make much of a few bytes: an array of items without content takes no bytes,
however long it says that it is. A recursive schema is refused too, as the reader has no limit of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException

from consumers.formats.avro_columns import AvroColumns
from consumers.formats.avro_rows import NotPlainError
from consumers.formats.expansion import check_expansion
from service.domain.errors import BadMessage
from service.kafka.schema_registry import RegisteredSchema

_ERRORS = (EOFError, LookupError, ValueError, TypeError, ArithmeticError, StopIteration, MemoryError)
"""What the reader raises for bytes that do not fit the schema."""

_MOST_NODES = 10_000
_MOST_NODES_PER_BYTE = 8
_DEEPEST = 64
_MOST_ALIASES = 16
"""Of a field, whose content is there under each of them."""

_UNUSABLE = (
    *(SchemaParseException, ValueError, TypeError, LookupError),
    *(ArithmeticError, AttributeError, RecursionError),
)
"""What comes of texts that are no schema."""

_COMPLEX = frozenset({"record", "error", "array", "map", "enum", "fixed"})
_PRIMITIVES = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}
"""The fewest bytes that a value takes."""

_LONGEST_DECIMAL = 64
"""Bytes; digits take time by the square of their number."""


def _of_few_bytes(read: Callable[..., Any]) -> Callable[..., Any]:
    """A reader of decimals that refuses very long ones."""

    def read_decimal(data: bytes, *schemas: Any) -> Any:
        if len(data) > _LONGEST_DECIMAL:
            raise ValueError
        return read(data, *schemas)

    return read_decimal


for _kind in ("bytes-decimal", "fixed-decimal"):
    LOGICAL_READERS[_kind] = _of_few_bytes(LOGICAL_READERS[_kind])


def avro_reader(schema: RegisteredSchema) -> Callable[[bytes, int], Any]:
    """A function that reads a value that begins at an offset.

    It raises `BadMessage` for bytes that do not fit the schema. A field of the outermost record that has
    aliases is found under these names too, so a path or a name of the contract survives its renaming.

    Raises:
        BadMessage: the schema cannot be used.
    """
    parsed, _, costs = _parsed(schema)
    aliases = _aliases(parsed)

    def read(value: bytes, begin: int) -> Any:
        stream = BytesIO(value)
        stream.seek(begin)
        try:
            found: Any = fastavro.schemaless_reader(stream, parsed, None)
        except _ERRORS:
            raise BadMessage("malformed_record", "the value does not fit its Avro schema") from None
        if stream.tell() != len(value):
            raise BadMessage("malformed_record", "bytes follow the end of the Avro value")
        check_expansion(
            found,
            value_bytes=len(value),
            most_names=costs.nodes + _MOST_NODES_PER_BYTE * len(value),
            longest_name=costs.longest_name,
        )
        for alias, name in aliases:
            found.setdefault(alias, found[name])
        return found

    return read


def avro_columns(schema: RegisteredSchema) -> AvroColumns | None:
    """Reads many values of a schema as columns; None if its values can only be read one by one.

    Raises:
        BadMessage: the schema cannot be used.
    """
    parsed, named, _ = _parsed(schema)
    try:
        return AvroColumns(parsed, named, LOGICAL_READERS)
    except (NotPlainError, *_UNUSABLE):
        return None


def _parsed(schema: RegisteredSchema) -> tuple[Any, dict[str, Any], _Costs]:
    """A schema as fastavro parses it, the types that have names, and what a value costs."""
    try:
        texts = [
            json.loads(text, object_hook=_without_marks)
            for text in (*schema.references.values(), schema.text)
        ]
        costs = _Costs()
        costs.check(texts)
        named: dict[str, Any] = {}
        for text in texts[:-1]:
            fastavro.parse_schema(text, named_schemas=named)
        return fastavro.parse_schema(texts[-1], named_schemas=named), named, costs
    except _UNUSABLE as error:
        raise BadMessage(
            "unsupported_schema", f"the registered text is no usable Avro schema ({type(error).__name__})"
        ) from None


def _aliases(parsed: Any) -> list[tuple[str, str]]:
    """Other names of the fields of the outermost record, with their names."""
    if not isinstance(parsed, dict) or parsed["type"] not in ("record", "error"):
        return []
    return [(alias, field["name"]) for field in parsed["fields"] for alias in field.get("aliases", ())]


def _without_marks(found: dict[str, Any]) -> dict[str, Any]:
    """An object without keys by which the parser marks schemas that it need not check."""
    return {key: value for key, value in found.items() if not key.startswith("__")}


class _Costs:
    """What a value of a schema costs: values that it consists of, and the fewest bytes that it takes.

    Attributes:
        longest_name: characters of the longest name of a field, alias or symbol.
        nodes: values that one of it consists of, besides the items of arrays and maps.
    """

    def __init__(self) -> None:
        self.longest_name = self.nodes = 0
        self._named: dict[str, tuple[int, int]] = {}
        self._open: set[str] = set()

    def check(self, texts: list[Any]) -> None:
        """Refuse a schema, the last of several, by which few bytes could fill the memory."""
        for text in texts:
            self.nodes, _ = self._cost(text, "", 0)
            if self.nodes > _MOST_NODES:
                raise BadMessage("unsupported_schema", f"it describes more than {_MOST_NODES:,} fields")

    def _cost(self, schema: Any, namespace: str, depth: int) -> tuple[int, int]:
        if depth > _DEEPEST:
            raise BadMessage("unsupported_schema", f"it is nested more than {_DEEPEST} deep")
        if isinstance(schema, list):
            branches = [self._cost(branch, namespace, depth + 1) for branch in schema]
            return 1 + max((nodes for nodes, _ in branches), default=0), 1
        if isinstance(schema, str):
            return (1, _PRIMITIVES[schema]) if schema in _PRIMITIVES else self._reference(schema, namespace)
        kind = schema["type"]
        if kind not in _COMPLEX:
            return self._cost(kind, namespace, depth + 1)
        if kind in ("array", "map"):
            return self._many(schema["items" if kind == "array" else "values"], kind, namespace, depth)
        return self._definition(schema, kind, namespace, depth)

    def _many(self, items: Any, kind: str, namespace: str, depth: int) -> tuple[int, int]:
        nodes, fewest = self._cost(items, namespace, depth + 1)
        fewest += kind == "map"
        if nodes > _MOST_NODES_PER_BYTE * fewest:
            raise BadMessage("unsupported_schema", f"an item of an {kind} has much content in few bytes")
        return 1, 1

    def _definition(
        self, schema: Mapping[str, Any], kind: str, namespace: str, depth: int
    ) -> tuple[int, int]:
        name = _full_name(schema["name"], schema.get("namespace", namespace))
        if kind == "enum":
            self._note(schema["symbols"])
            cost = 1, 1
        elif kind == "fixed":
            cost = 1, _size(schema["size"])
        else:
            self._open.add(name)
            inner = name.rpartition(".")[0]
            fields = [self._field(field, inner, depth + 1) for field in schema["fields"]]
            self._open.remove(name)
            cost = 1 + sum(nodes for nodes, _ in fields), sum(fewest for _, fewest in fields)
        self._named[name] = cost
        return cost

    def _field(self, field: Mapping[str, Any], namespace: str, depth: int) -> tuple[int, int]:
        aliases = field.get("aliases") or ()
        if len(aliases) > _MOST_ALIASES:
            raise BadMessage("unsupported_schema", f"a field has more than {_MOST_ALIASES} aliases")
        self._note([field["name"], *aliases])
        return self._cost(field["type"], namespace, depth)

    def _note(self, names: list[Any]) -> None:
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        "".join(names).encode()  # half of a surrogate pair cannot be written as JSON
        self.longest_name = max(self.longest_name, *map(len, names), 0)

    def _reference(self, name: str, namespace: str) -> tuple[int, int]:
        for full in (_full_name(name, namespace), name):
            if full in self._open:
                raise BadMessage("unsupported_schema", "recursive Avro schemas are not read")
            if full in self._named:
                return self._named[full]
        raise BadMessage("unsupported_schema", "it names a type that neither it nor its references define")


def _size(size: Any) -> int:
    if type(size) is not int or size < 0:
        raise ValueError
    return size


def _full_name(name: Any, namespace: Any) -> str:
    if not isinstance(name, str) or not isinstance(namespace, str | None):
        raise TypeError
    return f"{namespace}.{name}" if namespace and "." not in name else name
