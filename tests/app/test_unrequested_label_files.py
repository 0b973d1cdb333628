"""Rows of items that nobody has requested become labels without a request, where the model takes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from store_site import NOW, Site, message, record
from store_site import Record as ConsumedRecord

from service.app.consumer_wiring import label_checks
from service.app.files.delivery import Delivery
from service.app.files.label_rows import LabelRows
from service.app.files.records import Made, NotRequested, Record
from service.app.files.report import Report
from service.app.files.rows import Row, Table
from service.app.wiring import cohort_store
from service.domain.errors import BadMessage
from service.domain.label_signatures import verify
from service.domain.messages import Label
from service.domain.pending_joins import HOUR_SECONDS
from service.store.connection import Connection
from service.store.open_requests import OpenRequests
from service.store.request_registry import request_id_of

KEY = "a" * 32
ROW = {"item_id": "z", "true_class": "cat"}


class Asked:
    """A model whose leader has asked for the label of the item `a`, and that takes other labels too."""

    def __init__(self, connection: Connection, rule: dict[str, Any] | None = None, **sections: Any) -> None:
        model = {
            "classes": ["cat", "dog"],
            "score_bins": 1,
            "assessments": {"ask": {"budget": {"labels": 100}}},
            "unrequested_labels": rule or {"items": "census"},
        }
        self.site = Site(connection, {"m": model}, **sections)
        self.site.take_in([record(0, message("a"))])
        monitor = self.site.monitor("m")
        monitor.refresh(NOW + 1)
        monitor.ask(epoch=1, now=NOW + 1)

    def make(self, *rows: dict[str, Any], vendor: str | None = None) -> list[Made]:
        reader = OpenRequests(self.site.connection, self.site.keys("m"))
        maker = LabelRows(
            self.site.settings,
            label_checks(self.site.settings),
            renamed=(),
            model=None,
            vendor=vendor,
            annotator=None,
            connect=lambda: {"m": reader},
        )
        maker.begin(Table(None, iter(())), "rows.jsonl")
        return [one for _, one in maker.make([Row(n, row) for n, row in enumerate(rows, 1)], NOW)]

    def consume(self, *made: Made) -> list[str]:
        step = self.site.label_step()
        step.assign(0, 0)
        records = [
            ConsumedRecord(offset, one.value, key=one.key, headers=one.headers)
            for offset, one in enumerate(messages(made))
        ]
        step.process(0, records, NOW + 2)
        return self.site.letters.reasons


def messages(made: Sequence[Made]) -> list[Record]:
    """All that is sent."""
    records = [one for one in made if isinstance(one, Record)]
    return [one for record in records for one in (record, record.beside) if one is not None]


@pytest.fixture
def asked(connection: Connection) -> Asked:
    return Asked(connection)


def label_of(made: Made) -> Label:
    assert isinstance(made, Record), made
    return Label.model_validate_json(made.value)


def test_a_row_without_an_open_request_is_sent_without_one(asked: Asked) -> None:
    (made,) = asked.make(ROW)
    assert isinstance(made, Record)
    assert made.unrequested
    assert label_of(made).request_id is None
    assert asked.consume(made) == []


def test_a_row_of_an_open_request_answers_it(asked: Asked) -> None:
    (made,) = asked.make({"item_id": "a", "true_class": "cat"})
    assert isinstance(made, Record)
    assert not made.unrequested
    assert label_of(made).request_id == request_id_of("m", "a")
    assert asked.consume(made) == []


def test_a_row_of_an_open_request_is_the_label_of_the_waiting_prediction_too(asked: Asked) -> None:
    (made,) = asked.make({"item_id": "a", "true_class": "cat"})
    assert isinstance(made, Record)
    assert made.beside is not None
    assert label_of(made.beside).request_id is None
    assert asked.consume(made) == []
    cohorts = cohort_store(asked.site.settings, asked.site.connection, "m")
    assert cohorts is not None
    summary = cohorts.summary()
    (cohort,) = summary.cohorts
    assert (cohort.items, cohort.labels) == (1, 1)
    assert cohorts.advance(summary, epoch=1, now=NOW + 3 * HOUR_SECONDS) == 1


@pytest.mark.parametrize(
    "row", [{"request_id": request_id_of("m", "a"), "true_class": "cat"}, {"item_id": "a", "kind": "skip"}]
)
def test_skips_and_rows_that_name_their_request_answer_it_alone(asked: Asked, row: dict[str, Any]) -> None:
    (made,) = asked.make(row)
    assert isinstance(made, Record)
    assert made.beside is None


def test_both_labels_of_a_row_are_sent(asked: Asked) -> None:
    (made,) = asked.make({"item_id": "a", "true_class": "cat"})
    assert isinstance(made, Record)
    producer = Mock()
    delivery = Delivery(producer, "labels", on_refusal=Mock())
    delivery.send(1, made)
    delivery.finish()
    sent = [json.loads(call.kwargs["value"]).get("request_id") for call in producer.send.call_args_list]
    assert sent == [request_id_of("m", "a"), None]
    assert delivery.acknowledged == 2


def test_an_answer_of_an_item_outside_of_the_sample_answers_the_request_alone(connection: Connection) -> None:
    asked = Asked(connection, {"items": "sampled", "sampling_rate": 0.1})
    (made,) = asked.make({"item_id": "a", "true_class": "cat"})
    assert isinstance(made, Record)
    assert made.beside is None


def test_a_second_row_about_the_item_of_a_request_is_sent_without_one(asked: Asked) -> None:
    row = {"item_id": "a", "true_class": "cat"}
    found = [label_of(made).request_id for made in asked.make(row, row)]
    assert found == [request_id_of("m", "a"), None]


@pytest.mark.parametrize(("kind", "true_class"), [("correction", "dog"), ("retraction", None)])
def test_corrections_and_retractions_may_name_the_item_alone(
    asked: Asked, kind: str, true_class: str | None
) -> None:
    (made,) = asked.make({"item_id": "z", "kind": kind, "true_class": true_class})
    assert label_of(made).request_id is None
    assert asked.consume(made) == []


def test_a_skip_of_an_item_without_an_open_request_is_not_sent(asked: Asked) -> None:
    assert asked.make({"item_id": "z", "kind": "skip"}) == [NotRequested()]


def test_a_row_of_a_sampled_item_has_a_column_of_its_probability(connection: Connection) -> None:
    asked = Asked(connection, {"items": "sampled", "sampling_rate": 0.1})
    good, missing, low = asked.make(*(ROW | {"probability": p} for p in (0.5, None, 0.05)))
    assert label_of(good).probability == 0.5
    assert isinstance(missing, BadMessage)
    assert missing.reason == "missing_field"
    assert isinstance(low, BadMessage)
    assert asked.consume(good) == []


def test_the_answer_of_a_request_has_no_probability(connection: Connection) -> None:
    asked = Asked(connection, {"items": "sampled", "sampling_rate": 0.1})
    (made,) = asked.make({"item_id": "a", "true_class": "cat", "probability": 0.5})
    assert label_of(made).probability is None
    assert isinstance(made, Record)
    assert made.beside is not None
    assert label_of(made.beside).probability == 0.5
    assert asked.consume(made) == []


def test_labels_without_a_request_are_signed_too(connection: Connection) -> None:
    asked = Asked(connection, vendors={"acme": {"label_keys": [KEY]}})
    (made,) = asked.make(ROW, vendor="acme")
    assert isinstance(made, Record)
    assert verify(made.headers, made.value, {"acme": [KEY.encode()]}) == "acme"
    assert asked.consume(made) == []


def test_the_summary_counts_labels_without_a_request(asked: Asked) -> None:
    report = Report(unit="row", column_of=lambda field: field, shows_progress=False)
    rows = [ROW, {"item_id": "a", "true_class": "cat"}, {"item_id": "z", "kind": "skip"}]
    for number, made in enumerate(asked.make(*rows), 1):
        report.count(number, made)
    assert report.summary("labels", 3) == [
        "3 rows read, 3 sent to labels, 0 refused",
        "  without a request: 2",
        "    of these, beside the answer of a request: 1",
        "  not requested: 1",
    ]
