"""What schemas cannot do: make much of few bytes, or stop a consumer."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from schema_values import SCHEMAS, Registered, framed

from consumers.formats.messages import TopicMessages
from consumers.formats.protobuf_schema import MAIN
from consumers.formats.registered import RegisteredValues
from service.domain.errors import BadMessage, Unavailable
from service.domain.messages import PREDICTION_TYPE
from service.kafka.schema_registry import RegisteredSchema

PROTO = 'syntax = "proto3";\n'
SMALL = RegisteredSchema("PROTOBUF", PROTO + "message A { int32 x = 1; }", {})
SMALL_VALUE = framed(20, b"\0\x08\5")


def reason(kind: str, schema: Any, content: bytes, **references: str) -> str:
    """Why a value of a schema is refused."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    registry = Registered(SCHEMAS)
    registry.schemas[20] = RegisteredSchema(kind, text, references)
    messages = TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(registry, cached=10))
    with pytest.raises(BadMessage) as caught:
        messages((), framed(20, content))
    return caught.value.reason


def record(*fields: dict[str, Any], name: str = "P") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def array_of(items: Any) -> dict[str, Any]:
    return record({"name": "many", "type": {"type": "array", "items": items}})


BYTE = {"name": "b", "type": "boolean"}
UNUSABLE: dict[str, Any] = {
    "an alias that is a list": record({"name": "a", "type": "int", "aliases": [["b"]]}),
    "an alias that is null": record({"name": "a", "type": "int", "aliases": [None]}),
    "an alias that is an object": record({"name": "a", "type": "int", "aliases": [{}]}),
    "very many aliases": record({"name": "a", "type": "string", "aliases": [f"a{i}" for i in range(17)]}),
    "half of a surrogate pair": record({"name": "\ud800", "type": "int"}),
    "such an alias": record({"name": "a", "type": "int", "aliases": ["\ud800"]}),
    "a name that is a number": {"type": "record", "name": 5, "fields": []},
    "a name of a field that is a list": record({"name": ["a"], "type": "int"}),
    "a namespace that is a number": record() | {"namespace": 5},
    "a size that is infinite": {"type": "fixed", "name": "F", "size": float("inf")},
    "a size that is negative": {"type": "fixed", "name": "F", "size": -1},
    "a symbol that is a list": {"type": "enum", "name": "E", "symbols": [["a"]]},
    "nine nulls in a byte": array_of(
        record(BYTE, *({"name": f"n{i}", "type": "null"} for i in range(9)), name="I")
    ),
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
def test_an_avro_schema_with_a_wrong_part_is_unsupported(schema: Any) -> None:
    assert reason("AVRO", schema, b"\0" * 10) == "unsupported_schema"


@pytest.mark.parametrize(
    "items",
    [
        {"type": "enum", "name": "E", "symbols": ["A" * 50_000]},
        record({"name": "f" * 50_000, "type": "boolean"}, name="I"),
    ],
    ids=["a symbol", "a name"],
)
def test_a_long_name_is_not_repeated_for_every_byte_of_avro(items: Any) -> None:
    count = 100_000
    began = time.process_time()
    found = reason("AVRO", array_of(items), b"\xc0\x9a\x0c" + b"\0" * (count + 1))
    assert found == "message_too_large"
    # To write it would be 5 GB.
    assert time.process_time() - began < 5


UNUSABLE_PROTO = {
    "a field DESCRIPTOR": "message A { string DESCRIPTOR = 1; }",
    "a field HasField": "message A { string HasField = 1; }",
    "a Timestamp of its own": "package google.protobuf; message Timestamp { string x = 1; }",
    "a StringValue within another message": "package google; message protobuf { message StringValue {} }",
    "a Struct without fields": "package google.protobuf; message Struct { int32 fields = 1; }",
}


@pytest.mark.parametrize("text", UNUSABLE_PROTO.values(), ids=UNUSABLE_PROTO)
def test_a_proto_that_replaces_what_protobuf_has_is_unsupported(text: str) -> None:
    assert reason("PROTOBUF", PROTO + text, b"\0\x0a\1a") == "unsupported_schema"


def test_a_reference_does_not_replace_a_file_of_protobuf() -> None:
    name = "google/protobuf/timestamp.proto"
    text = f'import "{name}"; message A {{ google.protobuf.Timestamp model = 1; }}'
    other = "package google.protobuf; message Timestamp { string z = 1; }"
    schema = RegisteredSchema("PROTOBUF", PROTO + text, {name: PROTO + other})
    registered = RegisteredValues(Registered({20: schema}), cached=1)
    assert registered.read(framed(20, b"\0\x0a\2\x08\1"))["model"].year == 1970


@pytest.mark.parametrize(
    "name",
    [
        "a" * 300 + ".proto",
        "google/protobuf/" + "a" * 300,
        "a/.",
        "schema_of_a_registry.proto",
        "schema_of_a_registry.proto/x",
    ],
)
def test_a_reference_that_cannot_be_written_is_unsupported(name: str) -> None:
    assert reason("PROTOBUF", PROTO + "message A {}", b"\0", **{name: PROTO}) == "unsupported_schema"


def test_a_long_name_of_an_enum_is_not_repeated_for_every_byte_of_protobuf() -> None:
    text = f"enum E {{ {'X' * 50_000} = 0; }} message A {{ repeated E many = 1; }}"
    began = time.process_time()
    found = reason("PROTOBUF", PROTO + text, b"\0\x0a\xa0\x8d\x06" + b"\0" * 100_000)
    assert found == "message_too_large"
    # To write it would be 5 GB.
    assert time.process_time() - began < 5


WIDE = "".join(f"int64 f{i} = {i + 1}; " for i in range(1_000))
WIDE_2 = WIDE.replace("int64", "optional int64")
WIDE_PROTO = {
    "messages": (f"message A {{ repeated B many = 1; }} message B {{ {WIDE} }}", b"\x0a\0"),
    "values of a map": (
        f"message A {{ map<int32, B> many = 1; }} message B {{ {WIDE} }}",
        b"\x0a\2\x12\0",
    ),
    "groups": (
        f"message A {{ repeated group G = 1 {{ optional B b = 1; }} }} message B {{ {WIDE_2} }}",
        b"\x0b\x0a\0\x0c",
    ),
    "extensions": (
        f"message A {{ extensions 1 to 9; }} extend A {{ repeated B many = 1; }} message B {{ {WIDE_2} }}",
        b"\x0a\0",
    ),
}


@pytest.mark.parametrize(("text", "part"), WIDE_PROTO.values(), ids=WIDE_PROTO)
def test_messages_without_content_are_counted_before_there_is_room_for_their_fields(
    text: str, part: bytes
) -> None:
    resource = pytest.importorskip("resource")
    syntax = 'syntax = "proto2";' if "optional" in text else PROTO
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert reason("PROTOBUF", syntax + text, b"\0" + part * 100_000) == "message_too_large"
    # With all their fields, the messages would take 800 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_protobuf_of_many_small_messages_is_read() -> None:
    text = (
        PROTO + "message A { repeated B many = 1; } message B { string name = 1; int32 n = 2; A inner = 3; }"
    )
    registered = RegisteredValues(Registered({20: RegisteredSchema("PROTOBUF", text, {})}), cached=1)
    part = b"\x0a\x05\x0a\1a\x10\x07"
    found = registered.read(framed(20, b"\0" + part * 100_000))
    assert found["many"] == [{"name": "a", "n": 7}] * 100_000


@pytest.mark.parametrize(
    "ending",
    [
        "import time; time.sleep(60)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.kill(os.getpid(), 11)",
        "import sys; sys.exit('No module named grpc_tools')",
        "import sys; sys.exit(1)",
    ],
)
def test_a_schema_is_compiled_again_after_protoc_did_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: str
) -> None:
    registered = RegisteredValues(Registered({20: SMALL}), cached=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(script(tmp_path / "python", ending)))
        patch.setattr("consumers.formats.protobuf_schema._COMPILE_SECONDS", 1.0)
        with pytest.raises(Unavailable, match="protoc"):
            registered.read(SMALL_VALUE)
    assert registered.read(SMALL_VALUE) == {"x": 5}


FULL = "words = [re.sub('(?<=set_out=).*', '/dev/full', word) for word in words]"
FULL_FOR_THIS = "if is_this: sys.exit(f'{output}: No space left on device')"


@pytest.mark.parametrize("fault", [FULL, FULL_FOR_THIS])
def test_a_schema_is_compiled_again_after_its_output_had_no_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    registered = RegisteredValues(Registered({20: SMALL}), cached=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(faulty_protoc(tmp_path / "python", fault)))
        with pytest.raises(Unavailable, match="No space left on device"):
            registered.read(SMALL_VALUE)
    assert registered.read(SMALL_VALUE) == {"x": 5}


def test_a_schema_that_protoc_crashes_on_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registered = RegisteredValues(Registered({20: SMALL}), cached=1)
    crash = faulty_protoc(tmp_path / "python", "if is_this: os.abort()")
    monkeypatch.setattr(sys, "executable", str(crash))
    with pytest.raises(BadMessage, match="protoc fails"):
        registered.read(SMALL_VALUE)


def faulty_protoc(path: Path, fault: str) -> Path:
    """Runs protoc, but for a fault that may depend on whether `is_this` the small schema."""
    text = f"""
import os, re, sys
words = sys.argv[1:]
[folder] = [word[2:] for word in words if re.match("-I.*/credence-", word)]
[output] = [word.partition("=")[2] for word in words if "set_out=" in word]
is_this = "int32" in open(os.path.join(folder, "{MAIN}")).read()
{fault}
os.execv(sys.executable, [sys.executable, *words])
"""
    return script(path, text)


def script(path: Path, text: str) -> Path:
    """Runs in place of Python."""
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o700)
    return path
