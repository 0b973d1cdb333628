"""Compiles the .proto text that a registry returns, and refuses what cannot be read safely."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Container, Iterable, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2
from google.protobuf.message import Message

from service.domain.errors import BadMessage, Refused, Unavailable
from service.kafka.schema_registry import PART, RegisteredSchema

MAIN = "schema_of_a_registry.proto"
"""Name of the file of a schema."""

_IMPORT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}(?:/[A-Za-z0-9_.-]{1,200}){0,16}")
_MEMORY = "/dev/shm"  # noqa: S108 - a folder of its own is made in it
"""Can be written to where the file system of a container cannot."""

_OWN_FILES = Path(grpc_tools.__file__).parent / "_proto"
_OWN_NAMES = frozenset(
    str(path.relative_to(_OWN_FILES)) for path in _OWN_FILES.glob("google/protobuf/**/*.proto")
)
_COMPILE_SECONDS = 30.0
_STOPPED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
"""What the machine does to a process, whatever the schema is."""


def compile_schema(schema: RegisteredSchema) -> descriptor_pb2.FileDescriptorSet:
    """The files of a schema as protoc compiles them.

    In a process of its own, because the text is of whoever may register schemas. In place of references to
    google/protobuf/*.proto, those of this installation are read. A schema that was refused stays so; it is
    therefore refused only where protoc blames it, or fails on it twice and on another one never.

    Raises:
        BadMessage: protoc cannot compile them.
        Unavailable: protoc does not run to its end, or compiles nothing.
    """
    references = {name: text for name, text in schema.references.items() if name not in _OWN_NAMES}
    taken = {*references, MAIN}
    for name in references:
        if not _IMPORT.fullmatch(name) or not {".", ".."}.isdisjoint(name.split("/")) or name == MAIN:
            raise BadMessage("unsupported_schema", "the name of a reference is no path of an import")
        if any(str(folder) in taken for folder in PurePosixPath(name).parents):
            raise BadMessage("unsupported_schema", "the name of one reference is a folder of another one")
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    try:
        with TemporaryDirectory(prefix="credence-", dir=parent) as folder:
            return _compile_in(Path(folder), {**references, MAIN: schema.text})
    except OSError as error:
        remedy = f"protoc cannot write to a folder; give it {_MEMORY}, or one that TMPDIR names"
        raise Refused(PART, error, remedy) from None


def _compile_in(folder: Path, files: Mapping[str, str]) -> descriptor_pb2.FileDescriptorSet:
    output = folder / "descriptors.bin"
    for _ in range(2):
        run = _protoc(folder / "schema", files, output)
        if run.returncode == 0:
            return descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes())
        if _blames(run.stderr, files):
            raise BadMessage("unsupported_schema", "protoc does not compile the registered .proto")
        other = _protoc(folder / "other", {MAIN: 'syntax = "proto3";'}, output)
        if other.returncode or bytes(output) in run.stderr:
            raise _no_verdict(other.stderr or run.stderr)
    raise BadMessage("unsupported_schema", "protoc fails on the registered .proto, and not on another one")


def _protoc(folder: Path, files: Mapping[str, str], output: Path) -> subprocess.CompletedProcess[bytes]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{_OWN_FILES}"]
    command += ["--include_imports", f"--descriptor_set_out={output}", MAIN]
    try:
        run = subprocess.run(  # noqa: S603 - of this interpreter, with names of our own
            command, capture_output=True, timeout=_COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(PART, error, why="protoc takes too long to compile a schema") from None
    if run.returncode in _STOPPED:
        why = "protoc was stopped while it compiled a schema; it may lack memory"
        raise Unavailable(PART, ChildProcessError(run.returncode), why=why)
    return run


def _blames(errors: bytes, names: Iterable[str]) -> bool:
    """Whether protoc says where in a file it fails; it ends likewise where a disk is full, and says so."""
    places = "|".join(map(re.escape, (*names, *_OWN_NAMES)))
    said = errors.decode(errors="replace")
    return re.search(rf"^(?:{places}):\d+:\d+: (?!warning: )", said, re.MULTILINE) is not None


def _no_verdict(errors: bytes) -> Unavailable:
    [*_, last] = errors.decode(errors="replace").splitlines() or ["it says nothing"]
    return Unavailable(PART, ChildProcessError(), why=f"protoc cannot compile: {last[:200]}")


def examine(files: Iterable[descriptor_pb2.FileDescriptorProto], *, reserved: Container[str]) -> int:
    """Length of the longest name of a field or an enum's value, if all types can be read.

    Args:
        files: compiled.
        reserved: full names that only messages of protobuf's own files may have.

    Raises:
        BadMessage: there is such a type.
    """
    longest = 0
    for file in files:
        prefix = f"{file.package}." if file.package else ""
        rest: list[tuple[str, Any]] = [(prefix + message.name, message) for message in file.message_type]
        enums = list(file.enum_type)
        while rest:
            name, message = rest.pop()
            if name in reserved and file.name not in _OWN_NAMES:
                raise BadMessage("unsupported_schema", "it defines a type of google.protobuf itself")
            _check_message(message)
            longest = max(longest, *(len(field.name) for field in message.field), 0)
            enums.extend(message.enum_type)
            rest.extend((f"{name}.{nested.name}", nested) for nested in message.nested_type)
        longest = max(longest, *(len(value.name) for enum in enums for value in enum.value), 0)
    return longest


def _check_message(message: Any) -> None:
    if message.options.message_set_wire_format:
        raise BadMessage("unsupported_schema", "message_set_wire_format is not read")
    # The class of a message has its methods and its fields under their names.
    if any(hasattr(Message, field.name) for field in message.field):
        raise BadMessage("unsupported_schema", "a field has the name of a method of Protobuf's own messages")
