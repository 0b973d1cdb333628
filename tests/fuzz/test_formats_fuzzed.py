"""Decoders of every format, given what broken producers and attackers send: a fast part of `make fuzz`."""

from __future__ import annotations

import random
from dataclasses import replace

import json_mutators as mutators
import pytest
from arrow_streams import table_of, written
from decoder_properties import MESSAGE_BYTES, columns_are_like_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import SLOW, TARGETS, Record

from consumers.formats.arrow import arrow_rows
from consumers.formats.parts import DecodedColumns, decode_parts
from consumers.formats.records import decode_records

FAST = [name for name in TARGETS if name not in SLOW]


@pytest.mark.parametrize("name", FAST)
def test_any_input_is_taken_or_refused_for_a_reason(name: str) -> None:
    @settings(derandomize=True, max_examples=200)
    @given(script=st.binary(max_size=300))
    def stands(script: bytes) -> None:
        TARGETS[name](mutators.Scripted(script))

    stands()


@pytest.mark.parametrize("name", TARGETS)
def test_many_inputs_are_taken_or_refused_for_a_reason(name: str) -> None:
    rng = random.Random(name)
    for _ in range(1_000 // SLOW.get(name, 1) + 5):
        TARGETS[name](mutators.Scripted(rng.randbytes(300)))


@pytest.mark.parametrize("changed", ["scores", "times", "model"])
def test_columns_that_differ_from_rows_are_noticed(changed: str) -> None:
    stream = written(table_of(mutators.BASES[:1]))
    (part,) = decode_parts([Record(stream, [])], message_bytes=MESSAGE_BYTES, formats=[arrow_rows])
    rows = decode_records([Record(stream, [])], message_bytes=MESSAGE_BYTES, formats=[arrow_rows])
    assert isinstance(part, DecodedColumns)
    columns_are_like_rows([part], rows)
    columns = part.predictions
    other = {"scores": columns.scores / 2, "times": columns.scores, "model": "n"}
    wrong = replace(part, predictions=replace(columns, **{changed: other[changed]}))
    with pytest.raises(AssertionError, match="columns differ"):
        columns_are_like_rows([wrong], rows)
