"""Label Studio's formats, as version 1.23 writes them."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_studio_shapes import DATA, PROJECT, annotation, hook_body, minimal, task

from service.domain.label_studio import (
    Annotation,
    Hook,
    NotUnderstood,
    TooMany,
    Unusable,
    read_export,
    read_hook,
)
from service.domain.label_studio_tasks import choices_of, class_of, kind_of, labelling_configuration, text_of


def reported(*tasks: Any) -> list[Annotation | Unusable]:
    return read_export(json.dumps(tasks).encode())


def test_an_export_shows_what_was_chosen_by_whom_and_when() -> None:
    (one,) = reported(task(annotation()))
    time = datetime(2026, 11, 21, 23, 34, 20, 400094, tzinfo=UTC)
    assert one == Annotation(4, "r0", "c1", "i1", "", "cat", "label-studio:1", time)


def test_the_minimal_export_shows_the_same() -> None:
    (one,) = reported(minimal())
    time = datetime(2026, 11, 21, 23, 33, 36, 712590, tzinfo=UTC)
    assert one == Annotation(4, "r0", "c1", "i1", "", "cat", "label-studio:1", time)


def test_of_several_annotations_the_newest_counts() -> None:
    old = annotation(5, "cat", updated_at="2026-11-21T10:00:00Z")
    new = annotation(4, "dog", updated_at="2026-11-21T11:00:00Z")
    for order in ([old, new], [new, old]):
        (one,) = reported(task(*order))
        assert isinstance(one, Annotation)
        assert one.choice == "dog"
    rows = [
        minimal(updated_at="2026-11-21T11:00:00Z", true_class="dog"),
        minimal(updated_at="2026-11-21T10:00:00Z"),
    ]
    (one,) = reported(*rows)
    assert isinstance(one, Annotation)
    assert one.choice == "dog"


def test_a_skipped_task_is_a_skip() -> None:
    (one,) = reported(task(annotation(choice=None)))
    assert isinstance(one, Annotation)
    assert one.choice is None


def test_a_task_without_annotation_or_of_another_project_is_unusable() -> None:
    assert reported(task()) == [Unusable(4, "r0")]
    assert reported(task(annotation(), data={"text": "x"})) == [Unusable(4, None)]
    assert reported(task(annotation(result=[{"from_name": "box", "type": "labels", "value": {"x": 1}}]))) == [
        Unusable(4, "r0")
    ]


def test_two_choices_are_no_answer() -> None:
    both = [{"from_name": "true_class", "type": "choices", "value": {"choices": ["cat", "dog"]}}]
    assert reported(task(annotation(result=both))) == [Unusable(4, "r0")]


@pytest.mark.parametrize("action", ["ANNOTATION_CREATED", "ANNOTATION_UPDATED"])
def test_a_webhook_shows_an_annotation_with_its_task(action: str) -> None:
    body = hook_body(action, annotation=annotation(), task={"id": 4, "data": DATA, "is_labeled": True})
    (one,) = read_hook(body).annotations
    assert isinstance(one, Annotation)
    assert (one.request_id, one.choice) == ("r0", "cat")
    assert one.identity


def test_a_webhook_shows_several_annotations_with_their_tasks() -> None:
    tasks = [{"id": 4, "data": DATA}, {"id": 6, "data": DATA | {"request_id": "r2"}}]
    several = [annotation(8, task=6), annotation(9, "dog", task=4)]
    found = read_hook(hook_body("ANNOTATIONS_CREATED", annotation=several, task=tasks)).annotations
    assert [(one.task, one.request_id) for one in found] == [(6, "r2"), (4, "r0")]


def test_a_deleted_annotation_is_known_again() -> None:
    made = hook_body("ANNOTATION_CREATED", annotation=annotation(7), task={"id": 4, "data": DATA})
    gone = hook_body("ANNOTATIONS_DELETED", annotations=[{"id": 7}])
    (one,) = read_hook(made).annotations
    assert isinstance(one, Annotation)
    assert read_hook(gone).deleted == [one.identity]
    elsewhere = json.loads(gone) | {"project": PROJECT | {"created_at": "2025-01-01T00:00:00Z"}}
    assert read_hook(json.dumps(elsewhere).encode()).deleted != [one.identity]


@pytest.mark.parametrize("action", ["TASKS_CREATED", "PROJECT_UPDATED", "SOMETHING_NEW"])
def test_other_webhooks_tell_nothing(action: str) -> None:
    assert read_hook(hook_body(action, tasks=[{"id": 4}])) == Hook()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"{}", b"[1]", b'"x"', b"\xff", b"[" * 100_000, b'{"action": 5}', b'[{"id": "x"}]']
)
def test_what_is_no_format_of_label_studio_is_refused(body: bytes) -> None:
    for read in (read_export, read_hook):
        with pytest.raises(NotUnderstood):
            read(body)


def test_an_export_of_very_many_entries_is_refused_before_it_takes_memory() -> None:
    for much in (b"[" + b"{}," * 1_000_000 + b"{}]", b'[{"annotations":[' + b"{}," * 1_000_000 + b"{}]}]"):
        tracemalloc.start()
        try:
            with pytest.raises(TooMany):
                read_export(much)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 * len(much)


def test_values_that_are_not_used_take_no_memory() -> None:
    long = b"[" + b"{}," * 1_000_000 + b"{}]"
    places = (
        b'[{"data":{"payload":%s}}]',
        b'[{"data":{"request_id":%s}}]',
        b'[{"annotations":[{"result":%s}]}]',
    )
    for place in places:
        tracemalloc.start()
        try:
            assert [type(one) for one in read_export(place % long)] == [Unusable]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 5 * len(long)


def test_all_annotations_of_an_export_are_bounded_together() -> None:
    several = [task(*[annotation()] * 900, id=number) for number in range(12)]
    assert len(reported(*several[:11])) == 1
    with pytest.raises(TooMany):
        reported(*several)


def test_an_annotator_that_is_no_number_of_a_person_is_not_reported() -> None:
    for by in (10**200, -1, "ana", {"id": "x"}, [1]):
        (one,) = reported(task(annotation(completed_by=by)))
        assert isinstance(one, Annotation)
        assert one.annotator == ""


def test_the_configuration_shows_the_classes_in_their_order() -> None:
    view = ET.fromstring(labelling_configuration(["owl", "cat", "dog"], "image"))
    assert view[0].tag == "Image"
    assert view[0].attrib["value"] == "$payload"
    choices = view.find("Choices")
    assert choices is not None
    assert [choice.attrib["value"] for choice in choices] == ["owl", "cat", "dog"]
    assert (choices.attrib["toName"], choices.attrib["choice"]) == (view[0].attrib["name"], "single")


@given(st.lists(st.text(min_size=1, max_size=20), min_size=2, max_size=30, unique=True))
def test_every_class_is_known_again_by_its_choice(classes: list[str]) -> None:
    plain = [name for name in classes if name.encode(errors="ignore").decode() == name]
    view = ET.fromstring(labelling_configuration(plain, "text"))
    shown = [choice.attrib["value"] for choice in view.iter("Choice")]
    assert [class_of(plain, choice) for choice in shown] == plain
    assert len(choices_of(plain)) == len(plain)


def test_a_choice_that_lost_its_spaces_is_known_again() -> None:
    assert class_of([" a cat ", "dog"], "a cat") == " a cat "
    assert class_of(["cat", "dog"], "yak") is None


@pytest.mark.parametrize(
    ("payload", "uri", "kind"),
    [
        (None, "https://images.example/1.PNG?x=1", "image"),
        (None, "s3://bucket/sound.flac", "audio"),
        (None, "/data/film.mp4", "video"),
        (None, "https://documents.example/1", "text"),
        ("data:image/png;base64,xx", None, "image"),
        ("https://images.example/1.jpg", None, "image"),
        ("I like cat.png", None, "text"),
        ({"a": 1}, None, "text"),
        (None, None, "text"),
        (None, "http://[", "text"),
    ],
)
def test_an_item_is_shown_by_what_it_looks_like(payload: Any, uri: str | None, kind: str) -> None:
    assert kind_of(payload, uri) == kind


def test_a_payload_that_is_no_text_is_shown_as_json() -> None:
    assert json.loads(text_of({"a": [1, "ä"]}, None)) == {"a": [1, "ä"]}
    assert "ä" in text_of({"a": "ä"}, None)
    assert text_of("as it is", None) == "as it is"
    assert text_of(None, "https://x.example/1") == "https://x.example/1"
