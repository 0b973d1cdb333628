"""Label Studio's formats: its labelling configuration, its tasks, its exports and what its webhooks tell.

Nothing here knows Credence's requests but by what a task's data says of them. Read and tried with Label
Studio 1.23; of what it sends, only what is used here is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import msgspec

Shown = Literal["image", "audio", "video", "text"]

CHOICE = "true_class"
"""Name of the control that people answer with; in the minimal export it is the key of the answer."""

ITEM = "item"
PAYLOAD = "payload"

FEW_CHOICES = 20
"""More than so many are chosen from a list that drops down."""

_ENDINGS: dict[Shown, tuple[str, ...]] = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif"),
    "audio": (".wav", ".mp3", ".ogg", ".flac", ".m4a", ".opus"),
    "video": (".mp4", ".webm", ".mov"),
}
_TAGS: dict[Shown, str] = {"image": "Image", "audio": "Audio", "video": "Video", "text": "Text"}
_LONGEST_ID = 256
_HIGHEST_NUMBER = 2**63

MOST_ENTRIES = 1_000
"""Tasks that an export may have, and annotations that a task or a webhook may tell."""

_MOST_ANNOTATIONS = 10_000
"""Of all tasks of an export together."""

_MOST_RESULTS = 100
"""So many controls of an annotation are looked at."""


@dataclass(frozen=True)
class Annotation:
    """What a person did with one task.

    Attributes:
        task: id of the task; None where it is not told.
        request_id: from the task's data, as claim_id and item_id.
        claim_id: under which the request was claimed.
        item_id: of the request.
        identity: what tells it from all other annotations of this vendor; empty where that is not told.
        choice: what was chosen, as it was shown; None of a task that was skipped.
        annotator: who; empty where that is not told.
        time: when it was last changed.
    """

    task: int | None
    request_id: str
    claim_id: str
    item_id: str
    identity: str
    choice: str | None
    annotator: str
    time: datetime | None


@dataclass(frozen=True)
class Unusable:
    """A task without an annotation that could be used."""

    task: int | None
    request_id: str | None


@dataclass(frozen=True)
class Hook:
    """What a webhook tells.

    Attributes:
        annotations: that were made or changed.
        deleted: identities of those that were deleted.
    """

    annotations: Sequence[Annotation | Unusable] = ()
    deleted: Sequence[str] = ()


class NotUnderstood(Exception):  # noqa: N818 - says what happened
    """This is none of Label Studio's formats."""


class TooMany(Exception):  # noqa: N818 - says what happened
    """There is more in it than is taken at once."""


_ABSENT = msgspec.Raw()


def _array_of(most: int) -> Any:
    """An array of undecoded values, cut off after so many; a list would be counted only once it is there."""
    fields = [(f"at_{number}", msgspec.Raw, _ABSENT) for number in range(most)]
    return msgspec.defstruct("_Array", fields, array_like=True)


_ENTRIES = _array_of(MOST_ENTRIES + 1)
_RESULTS = _array_of(_MOST_RESULTS)


class _Value(msgspec.Struct):
    choices: msgspec.Raw = _ABSENT


class _Result(msgspec.Struct):
    from_name: str = ""
    type: str = ""
    value: _Value = msgspec.field(default_factory=_Value)


class _Annotation(msgspec.Struct):
    id: int | None = None
    result: msgspec.Raw = _ABSENT
    was_cancelled: bool = False
    completed_by: msgspec.Raw = _ABSENT
    created_at: datetime | None = None
    updated_at: datetime | None = None
    task: int | None = None


class _Person(msgspec.Struct):
    id: int | None = None


class _Project(msgspec.Struct):
    id: int | None = None
    created_at: datetime | None = None


class _Data(msgspec.Struct):
    """What a task knows of its request; a value that is no text is not decoded."""

    request_id: msgspec.Raw = _ABSENT
    claim_id: msgspec.Raw = _ABSENT
    item_id: msgspec.Raw = _ABSENT


class _Task(_Data):
    """Of either export, and of a webhook; in the minimal export the data stands beside the answer."""

    id: int | None = None
    data: _Data | None = None
    annotations: msgspec.Raw = _ABSENT
    true_class: msgspec.Raw = _ABSENT
    annotator: msgspec.Raw = _ABSENT
    created_at: datetime | None = None
    updated_at: datetime | None = None


class _Hook(msgspec.Struct):
    action: str
    project: _Project = msgspec.field(default_factory=_Project)
    task: msgspec.Raw = _ABSENT
    annotation: msgspec.Raw = _ABSENT
    annotations: msgspec.Raw = _ABSENT


def kind_of(payload: Any, payload_uri: str | None) -> Shown:
    """How an item is best shown: by the ending of its address, or as text."""
    address = payload_uri if payload_uri is not None else payload
    if not isinstance(address, str):
        return "text"
    for kind, endings in _ENDINGS.items():
        if address.startswith(f"data:{kind}/"):
            return kind
        if address.startswith(("http://", "https://", "s3://", "gs://", "/")) or payload_uri is not None:
            try:
                path = urlsplit(address).path
            except ValueError:
                return "text"
            if path.lower().endswith(endings):
                return kind
    return "text"


def text_of(payload: Any, payload_uri: str | None) -> str:
    """What a task shows of an item: its address, or its payload as text."""
    if payload_uri is not None:
        return payload_uri
    if isinstance(payload, str):
        return payload
    return "" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False)


def labelling_configuration(classes: Sequence[str], kind: Shown) -> str:
    """The labelling configuration, XML: the item, and one choice among the classes, in their order."""
    view = ET.Element("View")
    shown = ET.SubElement(view, _TAGS[kind], name=ITEM, value=f"${PAYLOAD}")
    if kind == "image":
        shown.set("zoom", "true")
    choices = ET.SubElement(view, "Choices", name=CHOICE, toName=ITEM, choice="single", required="true")
    choices.set("layout", "select" if len(classes) > FEW_CHOICES else "vertical")
    for choice in choices_of(classes):
        ET.SubElement(choices, "Choice", value=choice)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def choices_of(classes: Sequence[str]) -> dict[str, str]:
    """What is shown of every class, and comes back, by which the class is known again.

    That is the class itself, but for characters that XML cannot hold.
    """
    choices: dict[str, str] = {}
    for name in classes:
        plain = "".join(c if _in_xml(c) else "\N{REPLACEMENT CHARACTER}" for c in name)
        shown, number = plain, 2
        while shown in choices or (shown != name and shown in classes):
            shown, number = f"{plain} ({number})", number + 1
        choices[shown] = name
    return choices


def class_of(classes: Sequence[str], choice: str) -> str | None:
    """The class that a choice stands for; None if there is none."""
    choices = choices_of(classes)
    trimmed = {shown.strip(): name for shown, name in choices.items()}
    return choices.get(choice, trimmed.get(choice))


def read_export(text: bytes) -> list[Annotation | Unusable]:
    """An export of Label Studio, `JSON` or `JSON_MIN`: of every request what its newest annotation says.

    Raises:
        NotUnderstood: it is neither.
        TooMany: tasks or annotations.
    """
    if not text.lstrip().startswith(b"["):
        raise NotUnderstood
    newest: dict[str, Annotation | Unusable] = {}
    annotations = 0
    for number, entry in enumerate(_several(text)):
        told_of_task = _of_task(_decoded(entry, _Task))
        annotations += len(told_of_task)
        if annotations > _MOST_ANNOTATIONS:
            raise TooMany
        for told in told_of_task:
            name = told.request_id if told.request_id is not None else f"\0{number}"
            before = newest.get(name)
            if before is None or isinstance(before, Unusable) or _is_newer(told, before):
                newest[name] = told
    return list(newest.values())


def read_hook(text: bytes) -> Hook:
    """What a webhook of Label Studio tells; nothing, if it is of something else than annotations.

    Raises:
        NotUnderstood: it is no webhook.
        TooMany: annotations.
    """
    hook = _decoded(text, _Hook)
    if hook.action == "ANNOTATIONS_DELETED":
        gone = [_decoded(each, _Annotation) for each in _several(hook.annotations)]
        return Hook(deleted=[_identity(each, hook.project) for each in gone if each.id is not None])
    if hook.action not in {"ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"}:
        return Hook()
    tasks = {task.id: task for task in (_decoded(each, _Task) for each in _several(hook.task))}
    told: list[Annotation | Unusable] = []
    for each in _several(hook.annotation):
        annotation = _decoded(each, _Annotation)
        task = tasks.get(annotation.task)
        if task is None:
            raise NotUnderstood
        told.append(_annotation(task.id, task.data or _Data(), annotation, hook.project))
    return Hook(annotations=told)


def _decoded(text: bytes | msgspec.Raw, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotUnderstood from error


def _several(text: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """The elements of an array, undecoded; what is no array, by itself; none of null, or of nothing."""
    value = bytes(text).strip()
    if value in {b"", b"null"}:
        return []
    if not value.startswith(b"["):
        return [msgspec.Raw(value)]
    found = _elements(msgspec.Raw(value), _ENTRIES)
    if len(found) > MOST_ENTRIES:
        raise TooMany
    return found


def _is_array(value: msgspec.Raw) -> bool:
    return bytes(value).startswith(b"[")


def _elements(value: msgspec.Raw, shape: Any) -> list[msgspec.Raw]:
    if not _is_array(value):
        return []
    array = _decoded(value, shape)
    return [each for each in msgspec.structs.astuple(array) if each is not _ABSENT]


def _of_task(task: _Task) -> list[Annotation | Unusable]:
    annotations = _several(task.annotations)
    if _is_array(task.annotations) or task.data is not None:
        data = task.data or _Data()
        told = [_annotation(task.id, data, _decoded(each, _Annotation), _Project()) for each in annotations]
        return told or [Unusable(task.id, _text(data.request_id))]
    ids = _ids(task)
    choice = _text(task.true_class)
    if ids is None or choice is None:
        return [Unusable(task.id, _text(task.request_id))]
    time = task.updated_at or task.created_at
    return [Annotation(task.id, *ids, "", choice, _annotator(task.annotator), _aware(time))]


def _annotation(
    task: int | None, data: _Data, annotation: _Annotation, project: _Project
) -> Annotation | Unusable:
    ids, choice = _ids(data), _choice(annotation)
    if ids is None or (choice is None and not annotation.was_cancelled):
        return Unusable(task, _text(data.request_id))
    return Annotation(
        task,
        *ids,
        _identity(annotation, project),
        None if annotation.was_cancelled else choice,
        _annotator(annotation.completed_by),
        _aware(annotation.updated_at or annotation.created_at),
    )


def _choice(annotation: _Annotation) -> str | None:
    """What was chosen; None if nothing was, or not one thing alone."""
    for each in _elements(annotation.result, _RESULTS):
        try:
            result = msgspec.json.decode(each, type=_Result)
        except msgspec.DecodeError:
            continue  # of another control
        if result.from_name == CHOICE and result.type == "choices":
            choices = _elements(result.value.choices, _RESULTS)
            return _text(choices[0]) if len(choices) == 1 else None
    return None


def _ids(data: _Data) -> tuple[str, str, str] | None:
    ids = [_text(value) for value in (data.request_id, data.claim_id, data.item_id)]
    return None if None in ids else (ids[0] or "", ids[1] or "", ids[2] or "")


def _text(value: msgspec.Raw) -> str | None:
    if not bytes(value).startswith(b'"'):
        return None
    text: str = _decoded(value, str)
    return text if 0 < len(text) <= _LONGEST_ID else None


def _identity(annotation: _Annotation, project: _Project) -> str:
    """What tells an annotation from those of other projects, and of other installations."""
    if annotation.id is None or project.id is None:
        return ""
    begun = "" if project.created_at is None else project.created_at.isoformat()
    return f"{project.id} {begun} {annotation.id}"


def _annotator(told: msgspec.Raw) -> str:
    """A person by number, which is told alone, or in an object."""
    try:
        person = msgspec.json.decode(told, type=int | _Person | None) if told is not _ABSENT else None
    except msgspec.DecodeError:
        return ""
    number = person.id if isinstance(person, _Person) else person
    return f"label-studio:{number}" if number is not None and 0 <= number < _HIGHEST_NUMBER else ""


def _aware(time: datetime | None) -> datetime | None:
    return time if time is not None and time.tzinfo is not None else None


def _is_newer(told: Annotation | Unusable, before: Annotation) -> bool:
    if isinstance(told, Unusable):
        return False
    return before.time is None or (told.time is not None and told.time >= before.time)


def _in_xml(character: str) -> bool:
    code = ord(character)
    return code in {0x9, 0xA, 0xD} or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code > 0xFFFF  # noqa: PLR2004 - the production Char of XML 1.0
