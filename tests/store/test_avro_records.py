"""Avro records on their way in, on a real Redis: they leave what the same predictions leave as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from schema_values import ENCODERS, SCHEMAS, Registered
from store_site import NOW, Record, Site, assert_same_facts, record
from test_arrow_records import MODELS, ROWS, pooled, two_sites

from consumers.formats.messages import TopicMessages
from consumers.formats.parts import DecodedColumns, decode_parts
from consumers.formats.registered import RegisteredValues
from service.domain.messages import PREDICTION_TYPE
from service.store.connection import Connection

MANY = [
    # Avro's times are in milliseconds here.
    row | {"item_id": f"{row['item_id']}-{copy}", "time": row["time"].replace(".000500", ".250")}
    for copy in range(5)
    for row in ROWS
]
FORMATS = [TopicMessages(PREDICTION_TYPE, registered=RegisteredValues(Registered(SCHEMAS), cached=10))]


@pytest.fixture
def sites(connection: Connection) -> list[Site]:
    return two_sites(connection, MODELS)


def avro(rows: Sequence[Any]) -> list[Record]:
    return [Record(place, ENCODERS["avro"](row)) for place, row in enumerate(rows)]


def take_in(site: Site, records: Sequence[Record]) -> None:
    """Process records of a registry, and store what comes of them."""
    step = site.prediction_step()
    step.formats = FORMATS
    step.assign(0, 0)
    step.process(0, records, NOW)
    step.flush(0, NOW)


def test_avro_records_leave_the_facts_that_they_leave_as_native_messages(sites: list[Site]) -> None:
    native, columnar = sites
    native.take_in([record(place, row) for place, row in enumerate(MANY)])
    [part] = decode_parts(avro(MANY), message_bytes=100_000, formats=FORMATS)
    assert isinstance(part, DecodedColumns)
    take_in(columnar, avro(MANY))
    assert columnar.letters.kept == []
    assert len(pooled(columnar)) == len(MANY)
    assert_same_facts(columnar.facts("m"), native.facts("m"))


def test_bad_avro_among_good_is_a_dead_letter_as_it_came(sites: list[Site]) -> None:
    bad = {3: {"score": 2.0}, 50: {"predicted_class": "mouse"}, 90: {"item_id": ""}, 110: {"model": "z"}}
    records = avro([row | bad.get(place, {}) for place, row in enumerate(MANY)])
    take_in(sites[0], records)
    letters = sites[0].letters.kept
    assert [(letter.index, letter.error.reason, letter.record.offset) for letter in letters] == [
        (None, "invalid_score", 3),
        (None, "unknown_class", 50),
        (None, "invalid_field", 90),
        (None, "unknown_model", 110),
    ]
    assert [letter.value for letter in letters] == [records[place].value for place in bad]
    assert sites[0].reader("m").traffic().traffic.predictions == len(MANY) - len(bad)
