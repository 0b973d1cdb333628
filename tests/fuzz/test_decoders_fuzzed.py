"""Both decoders, given what broken producers and attackers send: a fast part of `make fuzz`."""

from __future__ import annotations

import json
import time
import tracemalloc

import json_mutators as mutators
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import decoders_agree_with_the_contract, decoders_stand, headers_stand

from consumers.formats.native import decode_label, decode_predictions
from service.domain.errors import BadMessage

quickly = settings(derandomize=True, max_examples=300)
scripts = st.binary(max_size=120).map(mutators.Scripted)


@quickly
@given(script=scripts)
def test_any_message_is_taken_or_refused_for_a_reason(script: mutators.Scripted) -> None:
    decoders_stand(mutators.value(script))


@quickly
@given(value=st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused_for_a_reason(value: bytes) -> None:
    decoders_stand(value)


@quickly
@given(script=scripts)
def test_the_decoders_take_what_the_contract_takes(script: mutators.Scripted) -> None:
    decoders_agree_with_the_contract(mutators.message(script))


@quickly
@given(script=scripts)
def test_any_headers_are_taken_or_refused_for_a_reason(script: mutators.Scripted) -> None:
    headers_stand(mutators.headers(script))


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_mutants_are_taken_or_refused_for_a_reason(seed: int) -> None:
    chooser = mutators.Seeded(seed)
    for _ in range(500):
        decoders_stand(mutators.value(chooser))
        decoders_agree_with_the_contract(mutators.message(chooser))


GOOD = json.dumps(mutators.BASES[0]).encode()
SIZE = 1_000_000
HUGE: dict[str, bytes] = {
    "100,000 brackets": b"[" * 100_000,
    "100,000 nested arrays": mutators.deep(100_000, 0),
    "100,000 nested objects": mutators.deep(100_000, 1),
    "deep nesting in a skipped field": GOOD[:-1] + b',"colour":' + mutators.deep(100_000, 0) + b"}",
    "deep nesting in the payload": GOOD[:-1] + b',"payload":' + mutators.deep(100_000, 1) + b"}",
    "a number of 100,000 digits": GOOD.replace(b"0.5", b"1" * 100_000),
    "a fraction of a million digits": GOOD.replace(b"0.5", b"0." + b"5" * SIZE),
    "an exponent of 100,000 digits": GOOD.replace(b"0.5", b"1e" + b"9" * 100_000),
    "a skipped number of a million digits": GOOD[:-1] + b',"colour":' + b"9" * SIZE + b"}",
    "a name of a megabyte": GOOD.replace(b'"a"', b'"' + b"a" * SIZE + b'"'),
    "a name of escapes": GOOD.replace(b'"a"', b'"' + b"\\u0061" * (SIZE // 6) + b'"'),
    "100,000 keys": b"{" + b",".join(b'"k%d":0' % i for i in range(100_000)) + b"}",
    "one key 100,000 times": b"{" + b",".join([b'"score":0'] * 100_000) + b"}",
    "100,000 attributes": GOOD[:-1]
    + b',"attributes":{'
    + b",".join(b'"k%d":"v"' % i for i in range(100_000))
    + b"}}",
    "100,000 probabilities": b'{"model":"m","item_id":"a","probabilities":[' + b"0," * 100_000 + b"1]}",
    "a megabyte of blanks": b" " * SIZE + GOOD,
    "a megabyte of blanks and no end": b" " * SIZE + b"[",
    "a megabyte of zeros": bytes(SIZE),
    "an array that is cut off at its end": b"[" + (GOOD + b",") * (SIZE // 60),
    "a megabyte of good predictions": b"[" + b",".join([GOOD] * (SIZE // 60)) + b"]",
}


@pytest.mark.parametrize("what", HUGE)
def test_time_and_memory_are_bounded_by_the_size_of_the_message(what: str) -> None:
    value = HUGE[what]
    began = time.process_time()
    decode_predictions(value)
    _decode_label(value)
    # Two megabytes take milliseconds; the bound leaves room for a slow machine, and none for a square.
    assert time.process_time() - began < 2
    tracemalloc.start()
    try:
        decode_predictions(value)
        _decode_label(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30 * len(value) + 1_000_000


def _decode_label(value: bytes) -> None:
    try:
        decode_label(value)
    except BadMessage:
        return
