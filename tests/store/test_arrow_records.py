"""Arrow records on their way in, on a real Redis: they leave what the same predictions leave as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from arrow_streams import table_of, written
from store_site import NOW, Record, Site, assert_same_facts, message, record

from service.domain.errors import Unavailable
from service.store.connection import Connection
from service.store.records import PoolRecord, decode_pool_record

MODELS: dict[str, Any] = {
    "m": {
        "classes": ["cat", "dog", "owl"],
        "score_bins": 4,
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "camera": {"by": "attribute", "attribute": "camera"},
        },
        "assessments": {"ask": {"budget": {"labels": 1_000}}},
    },
    "n": {"classes": ["0", "1"], "assessments": {"ask": {"budget": {"labels": 1_000}}}},
}
CLASSES = ("cat", "dog", "owl")
ROWS = [
    message(
        row,
        predicted_class=CLASSES[row % 3],
        score=row / 60,
        attributes={"camera": f"c{row % 5}", "weather": "rain"}
        | ({"region": f"r{row % 7}"} if row % 4 else {}),
        time=f"2027-01-15T07:59:{row % 60:02d}.000500+00:00",
    )
    for row in range(60)
]


@pytest.fixture
def sites(connection: Connection) -> list[Site]:
    return two_sites(connection, MODELS)


def two_sites(connection: Connection, models: dict[str, Any]) -> list[Site]:
    return [Site(Connection(connection.client, f"{connection.prefix}{i}"), models) for i in "12"]


def arrow(offset: int, rows: Sequence[Any], **fields: Any) -> Record:
    return Record(offset, written(table_of(rows)), **fields)


def pooled(site: Site, model: str = "m") -> dict[str, PoolRecord]:
    values = site.connection.client.hvals(site.keys(model).items(0))
    return {kept.item_id: kept for kept in map(decode_pool_record, values)}


def test_arrow_records_leave_the_facts_that_their_rows_leave_as_native_messages(sites: list[Site]) -> None:
    native, columnar = sites
    parts = [ROWS[:20], ROWS[20:21], ROWS[21:]]
    native.take_in([record(place, *rows) for place, rows in enumerate(parts)])
    columnar.take_in([arrow(place, rows) for place, rows in enumerate(parts)])
    assert columnar.letters.kept == []
    assert len(pooled(columnar)) == len(ROWS)
    assert_same_facts(columnar.facts("m"), native.facts("m"))


def test_formats_may_be_mixed_in_one_topic(sites: list[Site]) -> None:
    native, mixed = sites
    parts = [ROWS[at : at + 7] for at in range(0, len(ROWS), 7)]
    native.take_in([record(place, *rows) for place, rows in enumerate(parts)])
    mixed.take_in(
        [arrow(place, rows) if place % 3 else record(place, *rows) for place, rows in enumerate(parts)]
    )
    assert mixed.letters.kept == []
    assert_same_facts(mixed.facts("m"), native.facts("m"))


def test_class_probabilities_are_those_of_native_messages(sites: list[Site]) -> None:
    rows = [
        message(row, model="n", predicted_class=..., score=..., probabilities=[row / 8, 1 - row / 8])
        for row in range(8)
    ]
    native, columnar = sites
    native.take_in([record(0, *rows)])
    columnar.take_in([arrow(0, rows)])
    assert_same_facts(columnar.facts("n"), native.facts("n"))


def test_an_arrow_record_that_is_delivered_again_counts_once(sites: list[Site]) -> None:
    for _ in range(2):
        sites[0].take_in([arrow(0, ROWS), record(1, message("d"))])
    assert sites[0].reader("m").traffic().traffic.predictions == len(ROWS) + 1


def test_every_bad_row_is_a_dead_letter_of_its_own_in_native_json(sites: list[Site]) -> None:
    bad = {3: {"score": 2.0}, 5: {"predicted_class": "mouse"}, 9: {"item_id": ""}, 11: {"model": "z"}}
    rows = [row | bad.get(place, {}) for place, row in enumerate(ROWS)]
    value = written(table_of(rows, as_column=True))
    sites[0].take_in([record(0, message("before")), Record(1, value, key=b"k")])
    letters = sites[0].letters.kept
    assert [(letter.index, letter.error.reason, letter.record.offset) for letter in letters] == [
        (3, "invalid_score", 1),
        (5, "unknown_class", 1),
        (9, "invalid_field", 1),
        (11, "unknown_model", 1),
    ]
    assert [json.loads(letter.value) for letter in letters] == [rows[place] for place in bad]
    assert pooled(sites[0]).keys() == {"before", *(str(row) for row in range(60) if row not in bad)}


def test_a_damaged_stream_is_one_dead_letter(sites: list[Site]) -> None:
    whole = written(table_of(ROWS))
    sites[0].take_in([Record(0, whole[:900]), arrow(1, ROWS)])
    (letter,) = sites[0].letters.kept
    assert (letter.error.reason, letter.index, letter.value) == ("invalid_arrow", None, whole[:900])
    assert len(pooled(sites[0])) == len(ROWS)


def test_rows_without_votes_count_as_missing_of_a_challenger(connection: Connection) -> None:
    compare = {"task": "challenge", "challenger": "next", "budget": {"labels": 1_000}}
    models = {"m": MODELS["m"] | {"assessments": {"compare": compare}}}
    native, columnar = two_sites(connection, models)
    native.take_in([record(0, *ROWS)])
    columnar.take_in([arrow(0, ROWS)])
    assert_same_facts(columnar.facts("m"), native.facts("m"))


def test_a_long_batch_that_fails_in_the_middle_continues_there(sites: list[Site]) -> None:
    long = {"payload": "x" * 10_000}
    batch = [record(place, message(place, **long)) for place in range(300)]
    batch[150] = record(150, message("bad", score=2.0, **long))
    step = sites[0].prediction_step()
    step.assign(0, 0)
    sites[0].letters.closed = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            step.process(0, batch, NOW)
    begun = step.flush(0, NOW)
    assert 0 < begun < 150
    assert sites[0].reader("m").traffic().traffic.predictions == begun
    sites[0].letters.closed = False
    step.process(0, batch, NOW)
    assert step.flush(0, NOW) == 300
    assert sites[0].reader("m").traffic().traffic.predictions == 299
    assert sites[0].letters.reasons == ["invalid_score"]
