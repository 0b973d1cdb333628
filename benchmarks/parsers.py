"""What it costs to parse JSON predictions, by library: to objects, or to columns.

A library that is not installed is left out: `pip install orjson pysimdjson` for all of them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

import msgspec

from benchmarks.streams import PACKED, SPREAD, Stream
from consumers.formats.native import decode_array, decode_prediction
from service.app.memory_tuning import collect_rarely

PREDICTIONS = 6_000
"""About a piece of a batch, as consumers decode it."""

_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_FIELDS = ("model", "item_id", "predicted_class", "score", "attributes", "time")

Parse = Callable[[], Any]


def arrays(values: Sequence[bytes]) -> Iterator[tuple[str, str, Parse]]:
    """Ways to parse arrays of predictions: library, what of it, and a function that parses all."""
    yield "msgspec", "objects with checked types", lambda: list(map(decode_array, values))
    yield "msgspec", "JSON texts of the elements only", lambda: list(map(_decode_raw, values))
    if orjson := _installed("orjson"):
        yield "orjson", "dictionaries, unchecked", lambda: list(map(orjson.loads, values))
    if simdjson := _installed("simdjson"):
        yield "pysimdjson", "six fields, unchecked", partial(_fields, simdjson.Parser(), values)
    yield "pyarrow", "columns, by a schema", partial(_arrow_columns, values)


def probabilities(values: Sequence[bytes]) -> Iterator[tuple[str, str, Parse]]:
    """The same of single predictions with class probabilities."""
    yield "msgspec", "objects with checked types", lambda: list(map(decode_prediction, values))
    if orjson := _installed("orjson"):
        yield "orjson", "dictionaries, unchecked", lambda: list(map(orjson.loads, values))
    if simdjson := _installed("simdjson"):
        yield "pysimdjson", "buffers of probabilities only", partial(_buffers, simdjson.Parser(), values)
    yield "pyarrow", "columns, by a schema", partial(_arrow_columns, [b"[%b]" % value for value in values])


def _fields(parser: Any, values: Sequence[bytes]) -> None:
    for value in values:
        array = parser.parse(value)
        for element in array:
            for name in _FIELDS:
                element[name]
        # The parser is not used again while anything of its last document is left.
        del array, element


def _buffers(parser: Any, values: Sequence[bytes]) -> list[bytes]:
    return [parser.parse(value)["probabilities"].as_buffer(of_type="d") for value in values]


def _arrow_columns(values: Sequence[bytes]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import json as arrow_json  # noqa: PLC0415

    texts = [(name, pa.string()) for name in ("model", "item_id", "predicted_class", "time")]
    attributes = pa.struct([(name, pa.string()) for name in PACKED.attribute_names])
    numbers = [("score", pa.float64()), ("probabilities", pa.list_(pa.float64()))]
    row = pa.struct([*texts, *numbers, ("attributes", attributes)])
    return arrow_json.read_json(
        pa.BufferReader(b"".join(b'{"rows":%b}\n' % value for value in values)),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=1 << 26),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=pa.schema([("rows", pa.list_(row))]), unexpected_field_behavior="error"
        ),
    )


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def measure(turns: int) -> list[dict[str, Any]]:
    """CPU time of a prediction for every way, the least of some turns."""
    collect_rarely()
    figures = []
    cases: tuple[tuple[Stream, Any], ...] = ((PACKED, arrays), (SPREAD, probabilities))
    for stream, ways in cases:
        values = list(stream.values(PREDICTIONS))
        found = list(ways(values))
        least = [float("inf")] * len(found)
        for way in list(range(len(found))) * turns:
            began = time.thread_time()
            found[way][2]()
            least[way] = min(least[way], time.thread_time() - began)
        for (library, what, _), seconds in zip(found, least, strict=True):
            figures.append(
                {
                    "stream": stream.name,
                    "library": f"{library} {version(library)}",
                    "what": what,
                    "us": 1e6 * seconds / PREDICTIONS,
                }
            )
    return figures


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=10, help="(default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.turns)
    if options.json:
        print(json.dumps(figures))
        return
    for row in figures:
        print(f"{row['stream']:26}{row['library']:20}{row['what']:34}{row['us']:8.2f} us a prediction")


if __name__ == "__main__":
    main()
