"""Writes predictions and labels in the formats that consumers read, sometimes badly."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from arrow_streams import table_of, written
from registered import UNKNOWN_SCHEMA, Language, Topic, compact, value_of

from service.domain.messages import LABEL_TYPE, PREDICTION_TYPE
from service.domain.open_inference import RESPONSE_TYPES

Row = dict[str, Any]
"""A message, as native JSON has it."""

_LANGUAGES: tuple[Language, ...] = ("avro", "protobuf", "json schema")
_TYPES: dict[Topic, str] = {"predictions": PREDICTION_TYPE, "labels": LABEL_TYPE}


@dataclass(frozen=True)
class Written:
    """A record without a key.

    Attributes:
        value: of the record.
        headers: of the record.
        plain: native JSON of the same messages; None if nothing in the record can be used.
    """

    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    plain: bytes | None = None


@dataclass(frozen=True)
class Writing:
    """How one record is written.

    Attributes:
        topic: that it is for.
        version: of the schemas of a registry.
        rng: decides the rest.
        is_damaged: whether nothing in it shall be usable.
    """

    topic: Topic
    version: int
    rng: random.Random
    is_damaged: bool = False


def native(row: Row, writing: Writing) -> Written:
    """A message by itself, as the contract has it."""
    value = compact(row)
    return Written(value[:-9]) if writing.is_damaged else Written(value, plain=value)


def binary_event(row: Row, writing: Writing) -> Written:
    """A CloudEvent whose attributes are headers; it has the message's time."""
    kind = "dev.credence.other.v1" if writing.is_damaged else _TYPES[writing.topic]
    headers = [("ce_specversion", b"1.0"), ("ce_type", kind.encode())]
    headers += [("ce_time", row["time"].encode())] if "time" in row else []
    value = json.dumps({name: of for name, of in row.items() if name != "time"}).encode()
    return Written(value, tuple(headers), None if writing.is_damaged else json.dumps(row).encode())


def structured_event(row: Row, writing: Writing) -> Written:
    """A CloudEvent as JSON: its data is a message, or a value of a registry in base64."""
    event = _event(row, writing)
    if writing.rng.random() < 0.3:
        inner = value_of(row, writing.rng.choice(_LANGUAGES), writing.topic, writing.version)
        event = {name: of for name, of in event.items() if name != "data"}
        event["data_base64"] = base64.b64encode(inner).decode()
    if writing.is_damaged:
        event["specversion"] = "0.3"
    headers = (("content-type", b"application/cloudevents+json"),)
    return Written(compact(event), headers, None if writing.is_damaged else compact(row))


def registered(row: Row, writing: Writing) -> Written:
    """A value of a schema registry, in one of its languages."""
    value = value_of(row, writing.rng.choice(_LANGUAGES), writing.topic, writing.version)
    if not writing.is_damaged:
        return Written(value, plain=compact(row))
    is_cut = writing.rng.random() < 0.7
    return Written(value[:-1] if is_cut else b"\0" + UNKNOWN_SCHEMA.to_bytes(4) + value[5:])


def array(rows: Sequence[Row], writing: Writing) -> Written:
    """A native array."""
    value = json.dumps(rows).encode()
    return Written(value[:-1]) if writing.is_damaged else Written(value, plain=value)


def array_event(rows: Sequence[Row], writing: Writing) -> Written:
    """A CloudEvent with an array as its data."""
    event = _event(rows[0], writing) | {"data": rows}
    event.pop("time", None)
    value = compact(event)
    headers = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
    return Written(value[:-1], headers) if writing.is_damaged else Written(value, headers, compact(rows))


def batch(rows: Sequence[Row], writing: Writing) -> Written:
    """A batch of CloudEvents, one of which may have no data."""
    events, plain = [_event(row, writing) for row in rows], [*rows]
    if writing.rng.random() < 0.1:
        del events[-1]["data"]
        plain[-1] = {}
    value = compact(events)
    headers = (("content-type", b"application/cloudevents-batch+json"),)
    return Written(value[:-1], headers) if writing.is_damaged else Written(value, headers, compact(plain))


def arrow(rows: Sequence[Row], writing: Writing) -> Written:
    """An Arrow stream, of one kind of rows. Without payloads, consumers read it as columns."""
    if writing.rng.random() < 0.7:
        rows = [{name: of for name, of in row.items() if name != "payload"} for row in rows]
    in_dictionaries, as_column = writing.rng.random() < 0.7, writing.rng.random() < 0.3
    value = written(table_of(rows, in_dictionaries=in_dictionaries, as_column=as_column))
    if writing.is_damaged:
        return Written(value[: len(value) // 2])
    return Written(value, plain=json.dumps(rows).encode())


def response(rows: Sequence[Row], writing: Writing) -> Written:
    """An inference response, of one kind of rows, as model servers log it: without payloads."""
    rows = [{name: of for name, of in row.items() if name != "payload"} for row in rows]
    columns: Row = {
        name: [row[name] for row in rows] for name in rows[0] if name not in ("model", "attributes")
    }
    columns["attributes.region"] = [row["attributes"]["region"] for row in rows]
    outputs = [
        {
            "name": name,
            "datatype": "FP64" if name in ("score", "probabilities") else "BYTES",
            "shape": [len(rows), 3] if name == "probabilities" else [len(rows)],
            "data": [*chain(*values)] if name == "probabilities" else values,
        }
        for name, values in columns.items()
    ]
    if writing.is_damaged:
        outputs[0]["data"] = []
    value = json.dumps({"model_name": rows[0]["model"], "outputs": outputs}).encode()
    logged = (("ce_specversion", b"1.0"), ("ce_type", RESPONSE_TYPES[0].encode()))
    headers = logged if writing.rng.random() < 0.5 else ()
    return Written(value, headers, None if writing.is_damaged else json.dumps(rows).encode())


def _event(row: Row, writing: Writing) -> Row:
    """An event of one message, with the message's time."""
    event = {"specversion": "1.0", "id": "1", "source": "/trial", "type": _TYPES[writing.topic]}
    event |= {"time": row["time"]} if "time" in row else {}
    return event | {"data": {name: of for name, of in row.items() if name != "time"}}


ONE: tuple[tuple[float, Callable[[Row, Writing], Written]], ...] = (
    (0.55, native),
    (0.1, binary_event),
    (0.15, structured_event),
    (0.2, registered),
)
"""Formats of records with one message, and how often each is chosen."""

SEVERAL: tuple[tuple[float, Callable[[Sequence[Row], Writing], Written]], ...] = (
    (0.15, array),
    (0.1, array_event),
    (0.2, batch),
    (0.35, arrow),
    (0.2, response),
)
"""Formats of records with several predictions, and how often each is chosen."""

OF_ONE_KIND = (arrow, response)
"""Formats that have the same fields and the same model in all rows."""
