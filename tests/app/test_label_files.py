"""Rows become labels: of the requests that they name, or of the open requests of their items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from store_site import NOW, Site, message, record
from store_site import Record as ConsumedRecord

from service.app.consumer_wiring import label_checks
from service.app.files.label_rows import LabelRows
from service.app.files.records import Made, NotRequested, Record
from service.app.files.rows import Row, Table, UnusableFileError
from service.config.settings import Settings
from service.domain.errors import BadMessage, ConfigurationError
from service.domain.messages import LABEL_TYPE, Label
from service.store.connection import Connection
from service.store.open_requests import OpenRequests
from service.store.request_registry import request_id_of

MODEL = {"classes": ["cat", "dog"], "score_bins": 1, "assessments": {"ask": {"budget": {"labels": 100}}}}
SEVERAL = MODEL | {"labels_per_item": {"least": 2, "most": 3}}
KEYS = {"acme": "a" * 32, "bolt": "b" * 32}
VENDORS = {name: {"label_keys": [key]} for name, key in KEYS.items()}

REQUEST = request_id_of("m", "a")
ANSWER = {"request_id": REQUEST, "item_id": "a", "true_class": "cat"}


def no_redis() -> Mapping[str, OpenRequests]:
    raise AssertionError("Redis is not needed")


def rows_maker(
    settings: Settings | None = None,
    *renamed: str,
    connect: Any = no_redis,
    vendor: str | None = None,
    annotator: str | None = None,
) -> LabelRows:
    used = settings or settings_of()
    return LabelRows(
        used,
        label_checks(used),
        renamed=renamed,
        model=None,
        vendor=vendor,
        annotator=annotator,
        connect=connect,
    )


def settings_of(**sections: Any) -> Settings:
    return Settings.model_validate({"models": {"m": MODEL}} | sections)


def made(maker: LabelRows, *rows: dict[str, Any]) -> list[Made]:
    maker.begin(Table(None, iter(())), "rows.jsonl")
    return [one for _, one in maker.make([Row(n, row) for n, row in enumerate(rows, 1)], NOW)]


def label_of(one: Made) -> Label:
    assert isinstance(one, Record), one
    return Label.model_validate_json(one.value)


def refusal(maker: LabelRows, row: dict[str, Any]) -> BadMessage:
    (one,) = made(maker, row)
    assert isinstance(one, BadMessage), one
    return one


class Asking:
    """A site whose leader has asked for labels; some items of a model `m`."""

    def __init__(self, connection: Connection, items: str, *, model: Any = None, **sections: Any) -> None:
        self.site = Site(connection, {"m": model or MODEL}, **sections)
        self.site.take_in([record(offset, message(item)) for offset, item in enumerate(items)])
        self.monitor = self.site.monitor("m")
        self.step = self.site.label_step()
        self.step.assign(0, 0)
        self.ask()

    def ask(self) -> None:
        self.monitor.refresh(NOW + 1)
        self.monitor.ask(epoch=1, now=NOW + 1)

    @property
    def open(self) -> set[str]:
        return set(self.site.reader("m").requests().open)

    def maker(self, **options: Any) -> LabelRows:
        reader = OpenRequests(self.site.connection, self.site.keys("m"))
        return rows_maker(self.site.settings, connect=lambda: {"m": reader}, **options)

    def consume(self, *records: Made) -> list[str]:
        """Have the consumer of labels take records; the reasons of those that it refuses."""
        given = [
            ConsumedRecord(offset, one.value, key=one.key, headers=one.headers)
            for offset, one in enumerate(records, self._offset())
            if isinstance(one, Record)
        ]
        self.site.letters.kept.clear()
        self.step.process(0, given, NOW + 2)
        return self.site.letters.reasons

    def _offset(self) -> int:
        return self.step._partitions[0].position


# Rows that name their request


def test_a_row_is_a_label_of_the_contract_with_its_item_as_key() -> None:
    (one,) = made(rows_maker(), ANSWER | {"annotator": "ana", "time": "2026-01-31T12:00:00Z"})
    label = label_of(one)
    assert (label.request_id, label.true_class, label.annotator, label.kind) == (
        REQUEST,
        "cat",
        "ana",
        "answer",
    )
    assert isinstance(one, Record)
    assert one.key == b"a"
    assert dict(one.headers)["ce_type"] == LABEL_TYPE.encode()


def test_a_label_without_a_time_is_of_now() -> None:
    label = label_of(made(rows_maker(), ANSWER)[0])
    assert label.time is not None
    assert label.time.timestamp() == NOW


@pytest.mark.parametrize("kind", ["skip", "correction", "retraction"])
def test_a_row_may_be_of_any_kind(kind: str) -> None:
    row = ANSWER | {"kind": kind}
    if kind != "correction":
        del row["true_class"]
    assert label_of(made(rows_maker(), row)[0]).kind == kind


def test_columns_can_be_renamed() -> None:
    maker = rows_maker(None, "true_class=label", "time=labelled_at")
    row = {"request_id": REQUEST, "item_id": "a", "label": "dog", "labelled_at": "1769860800"}
    assert label_of(made(maker, row)[0]).true_class == "dog"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ANSWER | {"true_class": "cow"}, "unknown_class"),
        (ANSWER | {"true_class": None}, "invalid_field"),
        (ANSWER | {"kind": "guess"}, "invalid_field"),
        (ANSWER | {"kind": "skip"}, "invalid_field"),
        (ANSWER | {"item_id": "b"}, "item_mismatch"),
        (ANSWER | {"model": "other"}, "unknown_model"),
        (ANSWER | {"annotator": "x" * 200}, "invalid_field"),
        (ANSWER | {"time": "noon"}, "invalid_field"),
        ({"true_class": "cat"}, "missing_field"),
        ({"item_id": "a", "true_class": "cat", "kind": "correction"}, "invalid_field"),
        ({"item_id": "a", "true_class": "cow"}, "unknown_class"),
    ],
)
def test_what_no_request_could_accept_is_refused(row: dict[str, Any], reason: str) -> None:
    given = {name: cell for name, cell in row.items() if cell is not None}
    assert refusal(rows_maker(), given).reason == reason


def test_if_several_people_label_items_a_row_needs_an_annotator(connection: Connection) -> None:
    asking = Asking(connection, "a", model=SEVERAL)
    assert refusal(asking.maker(), ANSWER).reason == "missing_field"
    label = label_of(made(asking.maker(annotator="ana"), ANSWER)[0])
    assert label.annotator == "ana"


def test_a_column_that_is_not_read_does_not_override_the_annotator() -> None:
    maker = rows_maker(None, "annotator=", annotator="ana")
    label = label_of(made(maker, ANSWER | {"": "0", "annotator": "x"})[0])
    assert label.annotator == "ana"


@pytest.mark.parametrize(
    ("columns", "problem"),
    [(["id", "true_class"], "no column item_id"), (["item_id", "label"], "no column true_class")],
)
def test_a_file_without_the_columns_is_refused_before_its_rows(columns: list[str], problem: str) -> None:
    with pytest.raises(UnusableFileError, match=problem):
        rows_maker().begin(Table(columns, iter(())), "rows.csv")


def test_columns_that_are_not_sent_are_named() -> None:
    maker = rows_maker()
    maker.begin(Table(["item_id", "true_class", "note"], iter(())), "rows.csv")
    assert maker.notes() == ["columns that are not sent: note"]


# Rows that name their item


def test_a_row_that_names_its_item_answers_the_open_request(connection: Connection) -> None:
    asking = Asking(connection, "ab")
    records = made(asking.maker(), {"item_id": "a", "true_class": "cat"})
    assert asking.consume(*records) == []
    assert asking.open == {request_id_of("m", "b")}


def test_an_item_without_an_open_request_is_not_sent(connection: Connection) -> None:
    asking = Asking(connection, "a")
    assert made(asking.maker(), {"item_id": "z", "true_class": "cat"}) == [NotRequested()]


def test_an_item_that_was_labelled_is_not_sent(connection: Connection) -> None:
    asking = Asking(connection, "a")
    row = {"item_id": "a", "true_class": "cat"}
    asking.consume(*made(asking.maker(), row))
    assert made(asking.maker(), row) == [NotRequested()]


def test_a_request_is_answered_by_one_row(connection: Connection) -> None:
    maker = Asking(connection, "a").maker()
    rows = {"item_id": "a", "true_class": "cat"}, {"item_id": "a", "true_class": "dog"}
    first, second = made(maker, *rows)
    assert label_of(first).true_class == "cat"
    assert second == NotRequested()


def test_a_row_that_names_its_request_alone_is_given_the_item(connection: Connection) -> None:
    asking = Asking(connection, "a")
    (one,) = made(asking.maker(), {"request_id": REQUEST, "true_class": "cat"})
    assert label_of(one).item_id == "a"
    assert asking.consume(one) == []


def test_a_row_that_names_a_request_that_is_not_open_needs_the_item(connection: Connection) -> None:
    asking = Asking(connection, "a")
    refused = refusal(asking.maker(), {"request_id": request_id_of("m", "z"), "true_class": "cat"})
    assert refused.reason == "unknown_request"
    assert "needs the item_id" in refused.detail


def test_the_second_person_answers_the_second_request(connection: Connection) -> None:
    asking = Asking(connection, "a", model=SEVERAL)
    row = {"item_id": "a", "true_class": "cat"}
    assert asking.consume(*made(asking.maker(annotator="ana"), row)) == []
    asking.ask()
    (one,) = made(asking.maker(annotator="ben"), row)
    assert label_of(one).request_id == request_id_of("m", "a", 2)
    assert asking.consume(one) == []


BY_ITEM = {"item_id": "a", "true_class": "dog"}


@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        (BY_ITEM, NotRequested),
        (ANSWER | {"true_class": "dog"}, BadMessage),
        ({"request_id": REQUEST, "true_class": "dog"}, BadMessage),
        ({"request_id": REQUEST, "item_id": "a", "kind": "skip"}, BadMessage),
    ],
)
@pytest.mark.parametrize("first", [BY_ITEM, ANSWER, {"request_id": REQUEST, "true_class": "cat"}])
@pytest.mark.parametrize("together", [True, False])
def test_a_request_is_answered_by_the_first_row_however_rows_name_it(
    connection: Connection, first: dict[str, Any], second: dict[str, Any], outcome: type, *, together: bool
) -> None:
    asking = Asking(connection, "a")
    maker = asking.maker()
    rows = made(maker, first, second) if together else made(maker, first) + made(maker, second)
    assert [type(one) for one in rows] == [Record, outcome]
    if isinstance(rows[1], BadMessage):
        assert rows[1].reason == "answered_before"
    assert asking.consume(*rows) == []


def test_an_answer_and_its_correction_may_be_in_one_file(connection: Connection) -> None:
    asking = Asking(connection, "a")
    rows = made(asking.maker(), BY_ITEM, ANSWER | {"kind": "correction"})
    assert [type(one) for one in rows] == [Record, Record]
    assert asking.consume(*rows) == []


def test_somebody_who_has_labelled_the_item_is_refused_also_if_the_row_names_the_request(
    connection: Connection,
) -> None:
    asking = Asking(connection, "a", model=SEVERAL)
    asking.consume(*made(asking.maker(annotator="ana"), BY_ITEM))
    asking.ask()
    row = {"request_id": request_id_of("m", "a", 2), "true_class": "cat"}
    assert refusal(asking.maker(annotator="ana"), row).reason == "same_annotator"
    assert asking.consume(*made(asking.maker(annotator="ben"), row)) == []


def test_somebody_who_has_labelled_the_item_is_refused_before(connection: Connection) -> None:
    asking = Asking(connection, "a", model=SEVERAL)
    row = {"item_id": "a", "true_class": "cat", "annotator": "ana"}
    asking.consume(*made(asking.maker(), row))
    asking.ask()
    assert refusal(asking.maker(), row).reason == "same_annotator"


# Vendors


def test_labels_are_signed_by_the_vendor_that_is_named(connection: Connection) -> None:
    asking = Asking(connection, "abcdefgh", vendors=VENDORS)
    rows = [{"item_id": item, "true_class": "cat"} for item in "abcdefgh"]
    outcomes = {vendor: made(asking.maker(vendor=vendor), *rows) for vendor in KEYS}
    sent = [one for each in outcomes.values() for one in each if isinstance(one, Record)]
    assert len(sent) == 8, "each request was asked of one vendor"
    assert asking.consume(*sent) == []
    assert asking.open == set()


@pytest.mark.parametrize("vendor", [None, "other"])
def test_if_vendors_are_configured_one_must_be_named(vendor: str | None) -> None:
    with pytest.raises(ConfigurationError, match="must name the vendor that signs the labels"):
        rows_maker(settings_of(vendors=VENDORS), vendor=vendor)


def test_a_vendor_that_is_not_asked_about_the_model_is_refused() -> None:
    vendors = {"acme": VENDORS["acme"], "bolt": VENDORS["bolt"] | {"models": ["n"]}}
    settings = settings_of(models={"m": MODEL, "n": MODEL}, vendors=vendors)
    maker = rows_maker(settings, vendor="bolt")
    assert refusal(maker, ANSWER | {"model": "m"}).reason == "wrong_vendor"


def test_requests_of_a_time_without_vendors_are_answered_by_any(connection: Connection) -> None:
    asking = Asking(connection, "a")
    site = Site(connection, {"m": MODEL}, vendors=VENDORS)
    reader = OpenRequests(connection, site.keys("m"))
    maker = rows_maker(site.settings, connect=lambda: {"m": reader}, vendor="acme")
    (one,) = made(maker, {"item_id": "a", "true_class": "cat"})
    assert label_of(one).request_id in asking.open
