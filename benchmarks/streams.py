"""Streams of predictions for the benchmarks: what they look like, and how they come into a topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import SEEK_END, BytesIO
from itertools import islice
from typing import Any, Final, Literal

import fastavro
import numpy as np
import pyarrow as pa
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from service.domain.arrays import Floats, Indices

BEGAN = 1_800_000_000.0
AVRO_ID: Final = 1
AVRO_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "Prediction",
    "fields": [
        {"name": "model", "type": "string"},
        {"name": "item_id", "type": "string"},
        {"name": "predicted_class", "type": "string"},
        {"name": "score", "type": "double"},
        {"name": "attributes", "type": {"type": "map", "values": "string"}},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
_AVRO: Final = fastavro.parse_schema(dict(AVRO_SCHEMA))

_CAMERAS = ("dock", "gate")
_REGIONS = ("af", "ap", "eu", "sa", "us")
_CHUNK = 1_000
_SEGMENTS = 2_000
_DEVIATING = 0.03
"""Share of predictions whose value of an attribute is not the typical one of their segment."""
_TOLD_CHUNKS = 20
"""So many chunks have classes and scores of their own, which come again: to write them takes long."""


@dataclass(frozen=True)
class Stream:
    """A kind of stream.

    Attributes:
        name: in the tables.
        classes: of the model.
        packed: predictions in one record.
        form: of a record: native JSON, the response of a model server, Arrow's streaming format, or Avro as
            it is written with a schema registry.
        spread: whether they carry class probabilities.
        attributes: number of values of every attribute, which are correlated, and whose traffic follows
            Zipf's law. Without any there are a camera and a region.
    """

    name: str
    classes: int = 10
    packed: int = 1
    form: Literal["json", "response", "arrow", "avro"] = "json"
    spread: bool = False
    attributes: tuple[int, ...] = ()

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        if not self.attributes:
            return ("camera", "region")
        return tuple(f"a{number:02d}" for number in range(len(self.attributes)))

    def model(self) -> dict[str, Any]:
        """Settings of the model that it is of, with a grouping by each attribute and by predicted class."""
        attributes = {name: {"by": "attribute", "attribute": name} for name in self.attribute_names}
        return {
            "classes": [str(i) for i in range(self.classes)],
            "groupings": {"class": {"by": "predicted_class"}} | attributes,
        }

    def values(self, predictions: int) -> Iterator[bytes]:
        """Values of the records of so many predictions, with ever-new item ids."""
        elements = self._elements(predictions)
        if self.form == "json" and self.packed == 1:
            yield from elements
            return
        while batch := list(islice(elements, self.packed)):
            if self.form == "json":
                yield b"[" + b",".join(batch) + b"]"
            else:
                yield _WRITERS[self.form]([json.loads(row) for row in batch])

    def _elements(self, predictions: int) -> Iterator[bytes]:
        rng = np.random.default_rng(1)
        chunks: list[list[str]] = []
        for chunk, first in enumerate(range(0, predictions, _CHUNK)):
            count = min(_CHUNK, predictions - first)
            attributes = self._attribute_texts(count, rng)
            if chunk < _TOLD_CHUNKS:
                chunks.append(self._said(_CHUNK, rng))
            said = chunks[chunk % _TOLD_CHUNKS]
            for i in range(count):
                time = datetime.fromtimestamp(BEGAN + (first + i) * 1e-3, UTC).isoformat()
                yield (
                    f'{{"model":"m","item_id":"img-{first + i:012d}",{said[i]},'
                    f'"attributes":{{{attributes[i]}}},"time":"{time}"}}'
                ).encode()

    def _attribute_texts(self, count: int, rng: np.random.Generator) -> list[str]:
        if not self.attributes:
            cameras, regions = rng.integers(0, 2, count).tolist(), rng.integers(0, 5, count).tolist()
            return [
                f'"camera":"{_CAMERAS[camera]}","region":"{_REGIONS[region]}"'
                for camera, region in zip(cameras, regions, strict=True)
            ]
        columns = self.drawn_values(count, rng)
        texts = [
            [f'"{name}":"v{value}"' for value in column.tolist()]
            for name, column in zip(self.attribute_names, columns, strict=True)
        ]
        return [",".join(row) for row in zip(*texts, strict=True)]

    def drawn_values(self, count: int, rng: np.random.Generator) -> list[Indices]:
        """Values of every attribute, as numbers [count] each.

        Attributes go together as in a table of people or devices: a segment decides on all of them, and each
        of them deviates now and then.
        """
        sizes, chunks = np.array(self.attributes), np.random.default_rng(2)
        segments = max(_SEGMENTS, int(sizes.max()))
        # An attribute with as many values as there are segments names the segment.
        typical = [
            chunks.integers(0, size, segments) if size < segments else np.arange(size) for size in sizes
        ]
        chosen = rng.choice(segments, count, p=_zipf(segments))
        return [
            np.where(rng.random(count) < _DEVIATING, rng.choice(size, count, p=_zipf(size)), values[chosen])
            for size, values in zip(sizes.tolist(), typical, strict=True)
        ]

    def _said(self, count: int, rng: np.random.Generator) -> list[str]:
        if not self.spread:
            classes, scores = rng.integers(0, self.classes, count), rng.random(count)
            return [f'"predicted_class":"{c}","score":{s:.6f}' for c, s in zip(classes, scores, strict=True)]
        probabilities = rng.dirichlet(np.full(self.classes, 0.1), count)
        return [f'"probabilities":{json.dumps([float(f"{p:.13f}") for p in row])}' for row in probabilities]


def _zipf(size: int) -> Floats:
    law = 1 / np.arange(1, size + 1)
    return np.asarray(law / law.sum(), np.float64)


def _response(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """What a model server answers that says the same, but for the times: it has none of its own."""
    outputs = [_tensor("item_id", "BYTES", [row["item_id"] for row in rows])]
    if "probabilities" in rows[0]:
        outputs.append(_tensor("probabilities", "FP64", [row["probabilities"] for row in rows]))
    else:
        outputs.append(_tensor("predicted_class", "BYTES", [row["predicted_class"] for row in rows]))
        outputs.append(_tensor("score", "FP64", [row["score"] for row in rows]))
    outputs += [
        _tensor(f"attributes.{name}", "BYTES", [row["attributes"][name] for row in rows])
        for name in rows[0]["attributes"]
    ]
    return json.dumps({"model_name": "m", "outputs": outputs}, separators=(",", ":")).encode()


def _tensor(name: str, datatype: str, data: list[Any]) -> dict[str, Any]:
    if isinstance(data[0], list):
        shape = [len(data), len(data[0])]
        flat = [value for row in data for value in row]
        return {"name": name, "datatype": datatype, "shape": shape, "data": flat}
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}


def _arrow_stream(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The same rows as an Arrow stream: the model in the metadata, classes and attributes in dictionaries."""
    columns = {
        "item_id": pa.array([row["item_id"] for row in rows]),
        "predicted_class": pa.array([row["predicted_class"] for row in rows]).dictionary_encode(),
        "score": pa.array([row["score"] for row in rows], pa.float32()),
        "time": pa.array([datetime.fromisoformat(row["time"]) for row in rows], pa.timestamp("us", "UTC")),
    }
    for name in rows[0]["attributes"]:
        values = pa.array([row["attributes"][name] for row in rows])
        columns[f"attributes.{name}"] = values.dictionary_encode()
    table = pa.table(columns).replace_schema_metadata({"model": rows[0]["model"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _avro_value(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The one row as Avro, under the id of `AVRO_SCHEMA`."""
    [row] = rows
    stream = BytesIO(b"\0" + AVRO_ID.to_bytes(4))
    stream.seek(0, SEEK_END)
    time = datetime.fromisoformat(row["time"])
    fastavro.schemaless_writer(stream, _AVRO, {**row, "time": time})
    return stream.getvalue()


_WRITERS: Final[Mapping[str, Callable[[Sequence[Mapping[str, Any]]], bytes]]] = {
    "response": _response,
    "arrow": _arrow_stream,
    "avro": _avro_value,
}

SMALL = Stream("one in a record")
AVRO = Stream("one in a record, Avro", form="avro")
SPREAD = Stream("100 class probabilities", classes=100, spread=True)
PACKED = Stream("100 in a record", packed=100)
INFERENCE = Stream("100 in a response", packed=100, form="response")
ARROW = Stream("1,000 in an Arrow batch", packed=1_000, form="arrow", attributes=(2, 5, 10, 20, 50))
WIDE = Stream("12 attributes", classes=2, attributes=(2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 50))
MANY_CLASSES = Stream("1,000 classes, 3 attributes", classes=1_000, attributes=(50, 20, 10))
MANY_VALUES = Stream("10,000 values, 5 further attributes", attributes=(10_000, 2, 4, 8, 16, 32))
STREAMS = {
    "small": SMALL,
    "avro": AVRO,
    "spread": SPREAD,
    "packed": PACKED,
    "inference": INFERENCE,
    "arrow": ARROW,
    "wide": WIDE,
    "classes": MANY_CLASSES,
    "values": MANY_VALUES,
}


def create_topics(bootstrap_servers: str, names: list[str], *, partitions: int) -> None:
    """Make new topics."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    admin.create_topics([NewTopic(name, partitions, 1) for name in names])
    admin.close()


def produce(
    bootstrap_servers: str, topic: str, values: Iterator[bytes], *, partitions: int
) -> tuple[int, int]:
    """Write records into a topic, evenly; how many, and how long their values are together."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, batch_size=131_072, linger_ms=20)
    records = size = 0
    for value in values:
        producer.send(topic, value=value, partition=records // 500 % partitions)
        records, size = records + 1, size + len(value)
    producer.flush()
    producer.close()
    return records, size
