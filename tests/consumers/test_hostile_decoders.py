"""One record that a decoder cannot read is one dead letter, whatever the decoder does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from consumers.formats.decode_errors import guarded
from consumers.formats.mapped_topic import MappedTopic
from consumers.formats.parts import decode_parts
from consumers.formats.records import Formats
from consumers.prediction_errors import error_of, rejected
from service.domain.errors import BadMessage, Unavailable

GOOD = b'{"model":"m","item_id":"good","predicted_class":"cat","score":0.9}'
UNNATIVE = b"\1\2\3"


@dataclass(frozen=True)
class Record:
    value: bytes
    headers: Any = ()
    key: bytes | None = None


def fails(error: BaseException) -> Any:
    def decode(*_: Any) -> bytes:
        raise error

    return decode


@pytest.mark.parametrize(
    "error",
    [OverflowError("secret"), RecursionError("secret"), AttributeError("secret"), MemoryError("secret")],
)
@pytest.mark.parametrize("is_mapped", [False, True])
def test_an_error_that_no_one_thought_of_refuses_the_one_record(error: Exception, is_mapped: bool) -> None:
    formats: Formats = MappedTopic(fails(error)) if is_mapped else [fails(error)]
    [part] = decode_parts([Record(UNNATIVE)], message_bytes=1_000, formats=formats)
    [(place, element, refusal)] = part.errors
    assert (place, element, refusal.reason) == (0, None, "malformed_record")
    assert "secret" not in refusal.detail


def test_what_cannot_be_asked_now_is_asked_again_later() -> None:
    unavailable = Unavailable("schema_registry", TimeoutError())
    with pytest.raises(Unavailable):
        guarded(fails(unavailable))


def test_a_refusal_keeps_its_reason() -> None:
    with pytest.raises(BadMessage) as refused:
        guarded(fails(BadMessage("unknown_schema", "none")))
    assert refused.value.reason == "unknown_schema"


def test_a_dead_letter_holds_what_was_decoded_even_if_a_second_decoding_would_differ() -> None:
    answers = iter([b'[{"model":"m"},' + GOOD + b"]", b"[" + GOOD + b"]"])
    records = [Record(UNNATIVE)]
    [part] = decode_parts(records, message_bytes=1_000, formats=[lambda *_: next(answers)])
    [letter] = rejected(records, [(part, part.errors)])
    assert letter.element == b'{"model":"m"}'
    refused_later = error_of(part, 0, BadMessage("unknown_class", "none"))
    [letter] = rejected(records, [(part, [refused_later])])
    assert json.loads(letter.element or b"")["item_id"] == "good"
