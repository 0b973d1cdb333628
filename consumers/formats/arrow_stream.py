"""Reads an Arrow IPC stream that anybody may have written: checked completely before anything is used."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from consumers.formats.arrow_messages import check_messages
from consumers.formats.columns import Coded
from consumers.formats.open_inference import MOST_WRITTEN
from service.domain.arrays import Bytes, Flags, Indices, Ints
from service.domain.errors import BadMessage
from service.domain.messages import FIRST_SECOND, LAST_SECOND

ATTRIBUTE_PREFIX = "attributes."
_FIELDS = ("model", "item_id", "predicted_class", "payload", "payload_uri", "score", "probabilities", "time")
_TEXTS = frozenset(_FIELDS[:5])

_MICROSECONDS = 1_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": _MICROSECONDS, "ns": 1_000_000_000}

_encode = msgspec.json.Encoder().encode
_ESCAPED_BYTES = 6
"""Of a control character in JSON."""

_DICTIONARY_BYTES = 16
"""Of a dictionary for every row; of a longer one only what the rows have is decoded."""


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """The rows of a batch, whose buffers were checked.

    Attributes:
        count: of the rows.
        model: from the metadata of the schema, if it is there.
        fields: pyarrow's arrays by field of a prediction [n] each.
        attributes: the same by attribute.
    """

    count: int
    model: str | None
    fields: Mapping[str, Any]
    attributes: Mapping[str, Any]

    @property
    def shared_bytes(self) -> int:
        """Bytes of the model and of names of attributes, as JSON writes them in every row."""
        return len(_encode(self.model)) + sum(len(_encode(name)) for name in self.attributes)

    @property
    def arrays(self) -> Iterator[Any]:
        """All of them."""
        yield from self.fields.values()
        yield from self.attributes.values()

    def text_buffers(self, array: Any) -> tuple[Bytes, Ints]:
        """The bytes of an array of texts without nulls, and where each begins and the last ends [n + 1]."""
        return np.frombuffer(array.buffers()[2] or b"", np.uint8), _bounds(array).astype(np.int64)

    def microseconds(self) -> tuple[Ints, Flags] | None:
        """Times since the epoch, and which are missing [n] each; None without a column of times.

        A time outside of the years 1 to 9999 stays outside.
        """
        array = self.fields.get("time")
        if array is None:
            return None
        stamps: Ints = np.frombuffer(array.buffers()[1], np.int64, self.count, 8 * array.offset)
        is_missing: Flags = np.zeros(self.count, np.bool_)
        if array.null_count:
            is_missing = array.is_null().to_numpy(zero_copy_only=False)
            stamps = np.where(is_missing, 0, stamps)
        per_second = _PER_SECOND[array.type.unit]
        if per_second > _MICROSECONDS:
            stamps = stamps // (per_second // _MICROSECONDS)
        elif per_second < _MICROSECONDS:
            # Before they are multiplied, which may overflow.
            within = stamps.clip(FIRST_SECOND * per_second - 1, (LAST_SECOND + 1) * per_second)
            stamps = within * (_MICROSECONDS // per_second)
        return stamps, is_missing

    def coded(self, array: Any) -> Coded:
        """The texts of an array [n].

        Raises:
            BadMessage: a code is not in the dictionary.
        """
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import

        is_dictionary = hasattr(array, "dictionary")
        array = array if is_dictionary else array.dictionary_encode()
        dictionary, codes = array.dictionary, codes_of(array)
        if is_dictionary and _is_long(dictionary, self.count):
            used, codes = np.unique(codes, return_inverse=True)
            dictionary = dictionary.take(pa.array(used[used < len(dictionary)], pa.int64()))
        names: list[str | None] = dictionary.to_pylist()
        return Coded([*names, None] if array.null_count else names, codes)


def read_stream(value: bytes) -> list[ArrowRows]:
    """The rows of a record's value, by batch; batches without rows are left out.

    Raises:
        BadMessage: pyarrow is not installed, the value is no valid stream, a column has a wrong type, or
            very many rows share a long text.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, slow to import
    except ImportError:
        raise BadMessage(
            "arrow_not_installed", "reading Arrow needs pyarrow; run: pip install 'credence[arrow]'"
        ) from None
    try:
        check_messages(value)
        reader = pa.ipc.open_stream(value)
        places = places_of(pa, reader.schema)
        if len(places) < len(reader.schema):
            # Of the other columns not even the arrays are made.
            reader = pa.ipc.open_stream(value, options=pa.ipc.IpcReadOptions(included_fields=places))
        dictionaries = Dictionaries()
        batches = [rows_of(batch, dictionaries) for batch in reader if batch.num_rows]
    except (pa.ArrowException, struct.error, OSError, ValueError, OverflowError) as error:
        # Its message may quote content.
        raise BadMessage("invalid_arrow", f"not a valid Arrow IPC stream ({type(error).__name__})") from None
    _check_length(batches, dictionaries.uses, len(value))
    return batches


class Dictionaries:
    """Validates every dictionary of a stream once, however many columns and batches use it.

    Attributes:
        uses: arrays with texts of a dictionary, and the lengths of these in bytes [d].
    """

    def __init__(self) -> None:
        self.uses: list[tuple[Any, Ints]] = []
        self._lengths: dict[tuple[Any, ...], Ints] = {}

    def add(self, array: Any) -> None:
        """Validate an array with a dictionary, except for its codes.

        Raises:
            pyarrow.ArrowInvalid: it is invalid.
        """
        array.validate()
        dictionary = array.dictionary
        # Batches keep their buffers alive, so equal places have equal contents.
        places = [None if buffer is None else buffer.address for buffer in dictionary.buffers()]
        key = (dictionary.type.id, len(dictionary), dictionary.offset, *places)
        lengths = self._lengths.get(key)
        if lengths is None:
            # Offsets within the buffers, texts in UTF-8.
            dictionary.validate(full=True)
            lengths = self._lengths[key] = _written_lengths(dictionary)
        if len(lengths):
            self.uses.append((array, lengths))


def _written_lengths(dictionary: Any) -> Ints:
    """Bytes of every text as JSON may write it [d]: control characters and some others take six there."""
    lengths: Ints = np.diff(_bounds(dictionary))
    data = np.frombuffer(dictionary.buffers()[2] or b"", np.uint8)
    is_plain = not ((data < ord(" ")) | (data == ord("\\")) | (data == ord('"'))).any()
    return lengths if is_plain else lengths * _ESCAPED_BYTES


def places_of(pa: Any, schema: Any) -> list[int]:
    """Which columns are read.

    Raises:
        BadMessage: none, or one has a wrong type, or two have the same name.
    """
    places: list[int] = []
    found: set[tuple[str, str]] = set()
    for place, name in enumerate(schema.names):
        if not (name in _FIELDS or name == "attributes" or name.startswith(ATTRIBUTE_PREFIX)):
            continue
        places.append(place)
        kind = schema.field(place).type
        if name == "attributes":
            if not pa.types.is_struct(kind):
                raise _type_error("attributes", "a struct of utf8, or columns attributes.<name>")
            columns = [("attributes", child.name, child.type) for child in kind]
        elif name in _FIELDS:
            columns = [(name, "", kind)]
        else:
            columns = [("attributes", name.removeprefix(ATTRIBUTE_PREFIX), kind)]
        for field, attribute, kind_of_it in columns:
            if (field, attribute) in found:
                raise BadMessage("invalid_arrow", f"{field}: two columns have the same name")
            found.add((field, attribute))
            _check_type(pa, field, kind_of_it)
    if not places:
        raise BadMessage("invalid_arrow", "no column has the name of a field: at least item_id is needed")
    return places


def _check_type(pa: Any, name: str, kind: Any) -> None:
    types = pa.types
    if name in _TEXTS or name == "attributes":
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not (types.is_string(kind) or types.is_large_string(kind)):
            raise _type_error(name, "utf8, or a dictionary of utf8")
    elif name == "score" and not types.is_floating(kind):
        raise _type_error(name, "a float")
    elif name == "time" and not (types.is_timestamp(kind) and kind.tz):
        raise _type_error(name, "a timestamp with a time zone")
    elif name == "probabilities" and not (
        (types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))
        and types.is_floating(kind.value_type)
    ):
        raise _type_error(name, "a fixed-size list of floats")


def _type_error(name: str, expected: str) -> BadMessage:
    return BadMessage("invalid_arrow", f"{name}: the type must be {expected}")


def rows_of(batch: Any, dictionaries: Dictionaries) -> ArrowRows:
    """The rows of a batch of the columns that are read, checked except for the codes of dictionaries.

    Raises:
        pyarrow.ArrowInvalid: an array is invalid.
    """
    fields: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name in _FIELDS:
            fields[name] = array
        elif name == "attributes":
            array.validate()
            children = zip(array.type, array.flatten(), strict=True)
            attributes |= {child.name: values for child, values in children}
        else:
            attributes[name.removeprefix(ATTRIBUTE_PREFIX)] = array
    model = (batch.schema.metadata or {}).get(b"model")
    rows = ArrowRows(batch.num_rows, None if model is None else model.decode(), fields, attributes)
    for array in rows.arrays:
        if hasattr(array, "dictionary"):
            dictionaries.add(array)
        else:
            # Offsets within the buffers, texts in UTF-8.
            array.validate(full=True)
    return rows


def _check_length(batches: Sequence[ArrowRows], uses: Sequence[tuple[Any, Ints]], value_bytes: int) -> None:
    """Refuse rows that repeat long texts: of a dictionary, the model, or names of attributes."""
    shared = sum(rows.count * rows.shared_bytes for rows in batches)
    most = MOST_WRITTEN * value_bytes
    if shared + sum(len(array) * int(lengths.max()) for array, lengths in uses) <= most:
        return
    if shared + sum(int(np.append(lengths, 0)[codes_of(array)].sum()) for array, lengths in uses) > most:
        raise BadMessage("message_too_large", "what many rows share is too long for so many rows")


def codes_of(array: Any) -> Indices:
    """Which text of its dictionary every row has; one more than there are where it has none [n]."""
    codes: Indices
    size = len(array.dictionary)
    if array.null_count:
        is_missing = array.is_null().to_numpy(zero_copy_only=False)
        codes = array.indices.fill_null(0).to_numpy().astype(np.intp)
        present = codes[~is_missing]
        codes[is_missing] = size
    else:
        present = codes = array.indices.to_numpy().astype(np.intp)
    # A negative one is a very large one here.
    if len(present) and int(present.view(np.uintp).max()) >= size:
        raise BadMessage("invalid_arrow", "a code is not in its dictionary")
    return codes


def _bounds(array: Any) -> Ints:
    """Where each text begins in the data, and the last one ends [n + 1]."""
    if not len(array):
        return np.zeros(1, np.int64)
    kind = np.dtype(np.int64 if str(array.type) == "large_string" else np.int32)
    offsets: Ints = np.frombuffer(array.buffers()[1], kind, len(array) + 1, kind.itemsize * array.offset)
    return offsets


def _is_long(dictionary: Any, count: int) -> bool:
    bounds = _bounds(dictionary)
    return len(dictionary) > count or int(bounds[-1] - bounds[0]) > _DICTIONARY_BYTES * count
