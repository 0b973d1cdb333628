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


class _Value(msgspec.Struct):
    choices: list[str] = []


class _Result(msgspec.Struct):
    from_name: str = ""
    type: str = ""
    value: _Value = msgspec.field(default_factory=_Value)


class _Annotation(msgspec.Struct):
    id: int | None = None
    result: list[Any] = []
    was_cancelled: bool = False
    completed_by: Any = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    project: int | None = None
    unique_id: str | None = None
    task: int | None = None


class _Project(msgspec.Struct):
    id: int | None = None
    created_at: datetime | None = None


class _Task(msgspec.Struct):
    """Of either export, and of a webhook."""

    id: int | None = None
    data: dict[str, Any] | None = None
    annotations: list[_Annotation] | None = None
    # Of the minimal export, where the data stands beside the answer.
    request_id: Any = None
    claim_id: Any = None
    item_id: Any = None
    true_class: Any = None
    annotator: Any = None
    annotation_id: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class _Hook(msgspec.Struct):
    action: str
    project: _Project = msgspec.field(default_factory=_Project)
    task: _Task | list[_Task] | None = None
    annotation: _Annotation | list[_Annotation] | None = None
    annotations: list[_Annotation] = []


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
    """
    tasks = _decoded(text, list[_Task])
    newest: dict[str, Annotation | Unusable] = {}
    for number, task in enumerate(tasks):
        for told in _of_task(task):
            name = told.request_id if told.request_id is not None else f"\0{number}"
            before = newest.get(name)
            if before is None or isinstance(before, Unusable) or _is_newer(told, before):
                newest[name] = told
    return list(newest.values())


def read_hook(text: bytes) -> Hook:
    """What a webhook of Label Studio tells; nothing, if it is of something else than annotations.

    Raises:
        NotUnderstood: it is no webhook.
    """
    hook = _decoded(text, _Hook)
    if hook.action == "ANNOTATIONS_DELETED":
        deleted = [_identity(each, hook.project) for each in hook.annotations if each.id is not None]
        return Hook(deleted=deleted)
    if hook.action not in {"ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"}:
        return Hook()
    tasks = {task.id: task for task in _listed(hook.task)}
    told: list[Annotation | Unusable] = []
    for annotation in _listed(hook.annotation):
        task = tasks.get(annotation.task)
        if task is None:
            raise NotUnderstood
        told.append(_annotation(task.id, task.data or {}, annotation, hook.project))
    return Hook(annotations=told)


def _decoded(text: bytes, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotUnderstood from error


def _listed(one_or_several: Any) -> list[Any]:
    if one_or_several is None:
        return []
    return one_or_several if isinstance(one_or_several, list) else [one_or_several]


def _of_task(task: _Task) -> list[Annotation | Unusable]:
    if task.annotations is not None or task.data is not None:
        data = task.data or {}
        told = [_annotation(task.id, data, each, _Project()) for each in task.annotations or ()]
        return told or [Unusable(task.id, _text(data.get("request_id")))]
    ids = _ids({"request_id": task.request_id, "claim_id": task.claim_id, "item_id": task.item_id})
    choice = _text(task.true_class)
    if ids is None or choice is None:
        return [Unusable(task.id, _text(task.request_id))]
    time = task.updated_at or task.created_at
    return [Annotation(task.id, *ids, "", choice, _annotator(task.annotator), _aware(time))]


def _annotation(
    task: int | None, data: dict[str, Any], annotation: _Annotation, project: _Project
) -> Annotation | Unusable:
    ids, choice = _ids(data), _choice(annotation)
    if ids is None or (choice is None and not annotation.was_cancelled):
        return Unusable(task, _text(data.get("request_id")))
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
    for each in annotation.result:
        try:
            result = msgspec.convert(each, _Result)
        except msgspec.ValidationError:
            continue  # of another control
        if result.from_name == CHOICE and result.type == "choices":
            return result.value.choices[0] if len(result.value.choices) == 1 else None
    return None


def _ids(data: dict[str, Any]) -> tuple[str, str, str] | None:
    ids = [_text(data.get(name)) for name in ("request_id", "claim_id", "item_id")]
    return None if None in ids else (ids[0] or "", ids[1] or "", ids[2] or "")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID else None


def _identity(annotation: _Annotation, project: _Project) -> str:
    """What tells an annotation from those of other projects, and of other installations."""
    if annotation.id is None or project.id is None:
        return ""
    begun = "" if project.created_at is None else project.created_at.isoformat()
    return f"{project.id} {begun} {annotation.id}"


def _annotator(told: Any) -> str:
    number = told.get("id") if isinstance(told, dict) else told
    return f"label-studio:{number}" if type(number) is int and number >= 0 else ""


def _aware(time: datetime | None) -> datetime | None:
    return time if time is not None and time.tzinfo is not None else None


def _is_newer(told: Annotation | Unusable, before: Annotation) -> bool:
    if isinstance(told, Unusable):
        return False
    return before.time is None or (told.time is not None and told.time >= before.time)


def _in_xml(character: str) -> bool:
    code = ord(character)
    return code in {0x9, 0xA, 0xD} or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code > 0xFFFF  # noqa: PLR2004 - the production Char of XML 1.0
