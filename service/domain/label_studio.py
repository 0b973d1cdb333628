"""Annotations in Label Studio's exports and webhooks.

Of what Label Studio 1.23 sends, only the fields that are used here are decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

CHOICE = "true_class"
"""Name of the control that people answer with; in the minimal export it is the key of the answer."""

_LONGEST_ID = 256
_HIGHEST_NUMBER = 2**63

MOST_ENTRIES = 1_000
"""Tasks in an export, and annotations in a task or a webhook."""

_MOST_ANNOTATIONS = 10_000
"""In all tasks of an export together."""

_MOST_RESULTS = 100
"""Controls of an annotation that are searched for the choice."""


@dataclass(frozen=True)
class Annotation:
    """What a person did with one task.

    `request_id`, `claim_id` and `item_id` are those in the task's data.

    Attributes:
        task: id of the task, if there is one.
        identity: unique among all annotations of this vendor; empty if the annotation has no such id.
        choice: the chosen text; None if the task was skipped.
        annotator: empty if unknown.
        time: when the annotation was last changed.
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
    """A task without a usable annotation."""

    task: int | None
    request_id: str | None


@dataclass(frozen=True)
class Hook:
    """Annotations that were made or changed, and the identities of those that were deleted."""

    annotations: Sequence[Annotation | Unusable] = ()
    deleted: Sequence[str] = ()


class NotUnderstood(Exception):  # noqa: N818 - says what happened
    """The text has none of Label Studio's formats."""


class TooMany(Exception):  # noqa: N818 - says what happened
    """The text has more tasks or annotations than one call may have."""


_ABSENT = msgspec.Raw()


_FirstEntries = msgspec.defstruct(
    "_FirstEntries",
    [(f"entry_{number}", msgspec.Raw, _ABSENT) for number in range(MOST_ENTRIES + 1)],
    array_like=True,
)
"""The first entries of an array, not decoded; the decoder skips all others. A `list[msgspec.Raw]` would hold
every entry before anybody could count them: up to 21 times the memory of the body."""


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
    """A task's data about its request; only strings are decoded."""

    request_id: msgspec.Raw = _ABSENT
    claim_id: msgspec.Raw = _ABSENT
    item_id: msgspec.Raw = _ABSENT


class _Task(_Data):
    """A task of either export, or of a webhook. The minimal export has the data beside the answer."""

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


def read_export(text: bytes) -> list[Annotation | Unusable]:
    """The newest annotation of every request in an export of Label Studio, `JSON` or `JSON_MIN`.

    Raises:
        NotUnderstood: the text is neither.
        TooMany: tasks or annotations.
    """
    if not text.lstrip().startswith(b"["):
        raise NotUnderstood
    newest: dict[str, Annotation | Unusable] = {}
    annotations = 0
    for number, entry in enumerate(_several(text)):
        of_task = _of_task(_decoded(entry, _Task))
        annotations += len(of_task)
        if annotations > _MOST_ANNOTATIONS:
            raise TooMany
        for each in of_task:
            name = each.request_id if each.request_id is not None else f"\0{number}"
            before = newest.get(name)
            if before is None or isinstance(before, Unusable) or _is_newer(each, before):
                newest[name] = each
    return list(newest.values())


def read_hook(text: bytes) -> Hook:
    """The annotations in a webhook of Label Studio; none if the webhook is about something else.

    Raises:
        NotUnderstood: the text is not a webhook.
        TooMany: annotations.
    """
    hook = _decoded(text, _Hook)
    if hook.action == "ANNOTATIONS_DELETED":
        gone = [_decoded(each, _Annotation) for each in _several(hook.annotations)]
        return Hook(deleted=[_identity(each, hook.project) for each in gone if each.id is not None])
    if hook.action not in {"ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"}:
        return Hook()
    tasks = {task.id: task for task in (_decoded(each, _Task) for each in _several(hook.task))}
    found: list[Annotation | Unusable] = []
    for each in _several(hook.annotation):
        annotation = _decoded(each, _Annotation)
        task = tasks.get(annotation.task)
        if task is None:
            raise NotUnderstood
        found.append(_annotation(task.id, task.data or _Data(), annotation, hook.project))
    return Hook(annotations=found)


def _decoded(text: bytes | msgspec.Raw, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotUnderstood from error


def _several(text: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """The entries of an array, not decoded; of any other value the value itself; none of null or nothing."""
    value = bytes(text).strip()
    if not value.startswith(b"["):
        return [] if value in {b"", b"null"} else [msgspec.Raw(value)]
    found = _elements(msgspec.Raw(value))
    if len(found) > MOST_ENTRIES:
        raise TooMany
    return found


def _elements(value: msgspec.Raw) -> list[msgspec.Raw]:
    """The first entries of an array; none of any other value."""
    if not bytes(value).startswith(b"["):
        return []
    return [each for each in msgspec.structs.astuple(_decoded(value, _FirstEntries)) if each is not _ABSENT]


def _of_task(task: _Task) -> list[Annotation | Unusable]:
    if bytes(task.annotations).startswith(b"[") or task.data is not None:
        annotations, data = _several(task.annotations), task.data or _Data()
        found = [_annotation(task.id, data, _decoded(each, _Annotation), _Project()) for each in annotations]
        return found or [Unusable(task.id, _text(data.request_id))]
    ids, choice = _ids(task), _text(task.true_class)
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
    """The chosen text; None unless exactly one was chosen."""
    for each in _elements(annotation.result)[:_MOST_RESULTS]:
        try:
            result = msgspec.json.decode(each, type=_Result)
        except msgspec.DecodeError:
            continue  # of another control
        if result.from_name == CHOICE and result.type == "choices":
            choices = _elements(result.value.choices)
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
    """An id that is unique across projects and installations; empty if the annotation has none."""
    if annotation.id is None or project.id is None:
        return ""
    begun = "" if project.created_at is None else project.created_at.isoformat()
    return f"{project.id} {begun} {annotation.id}"


def _annotator(value: msgspec.Raw) -> str:
    """A person's number, which comes alone or in an object."""
    try:
        person = msgspec.json.decode(value, type=int | _Person | None) if value is not _ABSENT else None
    except msgspec.DecodeError:
        return ""
    number = person.id if isinstance(person, _Person) else person
    return f"label-studio:{number}" if number is not None and 0 <= number < _HIGHEST_NUMBER else ""


def _aware(time: datetime | None) -> datetime | None:
    return time if time is not None and time.tzinfo is not None else None


def _is_newer(found: Annotation | Unusable, before: Annotation) -> bool:
    if isinstance(found, Unusable):
        return False
    return before.time is None or (found.time is not None and found.time >= before.time)
