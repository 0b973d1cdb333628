"""Values of a registry, mappings and events, given what broken producers and attackers send."""

from __future__ import annotations

import random

import json_mutators as mutators
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registered_values import Record, formats_stand, framed, record

quickly = settings(derandomize=True, max_examples=300)


@quickly
@given(script=st.binary(max_size=120), rest=st.binary(max_size=200))
def test_any_record_is_taken_or_refused_for_a_reason(script: bytes, rest: bytes) -> None:
    formats_stand(record(mutators.Scripted(script), rest))


@quickly
@given(number=st.sampled_from([1, 2, 5, 6]), content=st.binary(max_size=200))
def test_any_content_of_a_schema_is_taken_or_refused_for_a_reason(number: int, content: bytes) -> None:
    formats_stand(Record(framed(number, content), []))


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_records_are_taken_or_refused_for_a_reason(seed: int) -> None:
    chooser, rng = mutators.Seeded(seed), random.Random(seed)
    for _ in range(1_000):
        formats_stand(record(chooser, rng.randbytes(rng.randrange(60))))
