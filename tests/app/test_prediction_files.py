"""Rows become predictions: by the names of their columns, and only if the consumer would take them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from consumers.formats.event_headers import event_time
from service.app.files.prediction_rows import PredictionRows
from service.app.files.records import Record
from service.app.files.rows import BadCell, Row, Table, UnusableFileError
from service.config.settings import Settings
from service.domain.errors import BadMessage, ConfigurationError
from service.domain.messages import PREDICTION_TYPE, Prediction

NOW = 1_800_000_000.0
SORTER = {
    "classes": ["cat", "dog"],
    "groupings": {"region": {"by": "attribute", "attribute": "region"}, "class": {"by": "predicted_class"}},
}
PLAIN = {"item_id": "007", "predicted_class": "cat", "score": "0.9"}


def rows_maker(*renamed: str, model: str | None = None, **sections: Any) -> PredictionRows:
    settings = Settings.model_validate({"models": {"sorter": SORTER}} | sections)
    return PredictionRows(settings, renamed=renamed, model=model)


def begin(maker: PredictionRows, *columns: str) -> None:
    maker.begin(Table(columns, iter(())), "rows.csv")


def made(
    maker: PredictionRows, *rows: dict[str, Any], fixed: bool = True
) -> list[dict[str, Any] | BadMessage]:
    """Messages of rows of a file that says its columns before, or not."""
    if fixed:
        begin(maker, *dict.fromkeys(name for row in rows for name in row))
    numbered = [Row(number, row) for number, row in enumerate(rows, 2)]
    outcomes = [one for _, one in maker.make(numbered, NOW)]
    assert len(outcomes) == len(rows)
    return [json.loads(one.value) if isinstance(one, Record) else one for one in outcomes]  # type: ignore[misc]


def message(maker: PredictionRows, row: dict[str, Any], **options: bool) -> dict[str, Any]:
    (one,) = made(maker, row, **options)
    assert isinstance(one, dict), one
    return one


def refusal(maker: PredictionRows, row: dict[str, Any], **options: bool) -> BadMessage:
    (one,) = made(maker, row, **options)
    assert isinstance(one, BadMessage)
    return one


def test_a_row_is_a_message_of_the_contract_with_its_item_as_key() -> None:
    maker = rows_maker()
    begin(maker, *PLAIN)
    [(_, record)] = maker.make([Row(2, PLAIN)], NOW)
    assert isinstance(record, Record)
    prediction = Prediction.model_validate_json(record.value)
    assert (prediction.model, prediction.item_id, prediction.score) == ("sorter", "007", 0.9)
    assert record.key == b"007"
    headers = dict(record.headers)
    assert (headers["ce_type"], headers["ce_specversion"]) == (PREDICTION_TYPE.encode(), b"1.0")
    assert event_time(record.headers) == NOW


def test_every_record_has_an_id_of_its_own() -> None:
    maker = rows_maker()
    begin(maker, *PLAIN)
    records = [one for _, one in maker.make([Row(2, PLAIN), Row(3, PLAIN)], NOW)]
    ids = {dict(one.headers)["ce_id"] for one in records if isinstance(one, Record)}
    assert len(ids) == 2


def test_attributes_of_groupings_are_found_by_their_names() -> None:
    one = message(rows_maker(), PLAIN | {"region": "north", "device": "a"})
    assert one["attributes"] == {"region": "north"}


def test_columns_can_be_renamed() -> None:
    maker = rows_maker("item_id=uuid", "attributes.region=Region", "attributes.device=d")
    row = {"uuid": "a", "predicted_class": "cat", "score": "1", "Region": "north", "d": "x"}
    one = message(maker, row)
    assert (one["item_id"], one["attributes"]) == ("a", {"region": "north", "device": "x"})


def test_a_field_without_a_column_is_not_read() -> None:
    assert "time" not in message(rows_maker("time="), PLAIN | {"time": "noon"})


@pytest.mark.parametrize("field", ["time", "payload_uri", "model", "votes.x", "attributes.region"])
def test_a_field_without_a_column_is_not_read_from_a_column_without_a_name(field: str) -> None:
    one = message(rows_maker(f"{field}="), {"": "1769860800"} | PLAIN)
    assert one == message(rows_maker(), PLAIN)


@pytest.mark.parametrize(
    "given", [{"region": "n"}, {"attributes.region": "n"}, {"attributes": '{"region": "n"}'}]
)
def test_an_attribute_without_a_column_is_left_out_wherever_it_is(given: dict[str, str]) -> None:
    maker = rows_maker("attributes.region=")
    assert "attributes" not in message(maker, PLAIN | given)
    assert "no column has attribute region" in maker.notes()[-1]


def test_a_column_with_the_prefix_overrides_one_with_the_plain_name() -> None:
    row = PLAIN | {"attributes.region": "n", "region": "s"}
    assert message(rows_maker(), row)["attributes"] == {"region": "n"}


def test_the_columns_of_wide_rows_are_not_remembered() -> None:
    maker = rows_maker()
    wide = PLAIN | {f"{number:01000}": "x" for number in range(5)}
    assert "item_id" in message(maker, wide, fixed=False)
    assert maker._found == {}


def test_attributes_and_votes_are_found_by_their_prefixes() -> None:
    row = PLAIN | {"attributes.region": "n", "attributes.device": "d", "votes.bayes": "dog"}
    one = message(rows_maker(), row)
    assert (one["attributes"], one["votes"]) == ({"region": "n", "device": "d"}, {"bayes": "dog"})


def test_a_column_of_an_attribute_overrides_the_object_of_attributes() -> None:
    row = PLAIN | {"attributes": '{"region": "n", "device": 7}', "region": "s"}
    assert message(rows_maker(), row)["attributes"] == {"region": "s", "device": "7"}


def test_probabilities_are_in_the_order_of_the_classes() -> None:
    row = {"item_id": "a", "probability.dog": "0.75", "probability.cat": "0.25"}
    assert message(rows_maker(), row)["probabilities"] == [0.25, 0.75]


def test_probabilities_can_be_renamed_though_a_class_contains_the_sign() -> None:
    classes = {"models": {"m": {"classes": ["a=b", "c"]}}}
    maker = rows_maker("probability.a=b=p", "probability.c=q", **classes)
    assert message(maker, {"item_id": "a", "p": "1", "q": "0"})["probabilities"] == [1.0, 0.0]


def test_a_row_without_probabilities_may_have_class_and_score() -> None:
    maker = rows_maker()
    both = {"item_id": "a", "probability.dog": "0.75", "probability.cat": "0.25"}
    one, other = made(maker, both, PLAIN)
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    assert ("probabilities" in one, "probabilities" in other) == (True, False)


def test_a_native_message_in_json_lines_is_sent_as_it_is() -> None:
    native: dict[str, Any] = {
        "model": "sorter",
        "item_id": "a",
        "predicted_class": "dog",
        "score": 0.4,
        "probabilities": [0.6, 0.4],
        "attributes": {"region": "north"},
        "time": "2026-01-31T12:00:00Z",
        "payload": {"a": [1.5, None]},
        "votes": {"x": "cat"},
    }
    assert message(rows_maker(), native, fixed=False) == native


@pytest.mark.parametrize(
    ("row", "reason", "column"),
    [
        (PLAIN | {"predicted_class": "cow"}, "unknown_class", None),
        (PLAIN | {"score": "1.5"}, "invalid_score", None),
        (PLAIN | {"score": "nan"}, "invalid_field", "score"),
        (PLAIN | {"time": "noon"}, "invalid_field", "time"),
        (PLAIN | {"item_id": "x" * 257}, "invalid_field", None),
        (PLAIN | {"model": "other"}, "unknown_model", "model"),
        (PLAIN | {"votes.x": "cow"}, "unknown_class", None),
        (PLAIN | {"payload": "x" * 20_000}, "payload_too_large", None),
        (PLAIN | {"payload": "x" * 2_000_000}, "message_too_large", None),
        (PLAIN | {"payload": "x", "payload_uri": "y"}, "invalid_field", None),
        (PLAIN | {f"attributes.{n}": "x" for n in range(65)}, "invalid_field", None),
        ({"item_id": "a", "probabilities": "[0.5, 0.4]"}, "invalid_probabilities", None),
        ({"item_id": "a", "probabilities": "[1, 0, 0]"}, "invalid_probabilities", None),
        ({"item_id": "a", "probability.cat": "1", "probability.dog": "1"}, "invalid_probabilities", None),
    ],
)
def test_what_the_consumer_would_refuse_is_refused_for_the_same_reason(
    row: dict[str, Any], reason: str, column: str | None
) -> None:
    refused = refusal(rows_maker(), row)
    assert refused.reason == reason
    assert getattr(refused, "column", None) == column


def test_a_row_whose_item_is_missing_is_refused_alone() -> None:
    maker = rows_maker()
    bad, good = made(maker, {"predicted_class": "cat", "score": "1"}, PLAIN)
    assert isinstance(bad, BadMessage)
    assert bad.reason == "missing_field"
    assert isinstance(good, dict)


def test_probabilities_of_some_classes_are_refused() -> None:
    maker = rows_maker()
    complete = {"item_id": "a", "probability.cat": "1", "probability.dog": "0"}
    _, refused = made(maker, complete, {"item_id": "b", "probability.cat": "1"})
    assert isinstance(refused, BadCell)
    assert (refused.reason, refused.column) == ("missing_field", "probability.dog")


def test_a_row_that_cannot_be_read_is_refused_as_it_is() -> None:
    maker = rows_maker()
    begin(maker, *PLAIN)
    problem = BadMessage("malformed_csv", "2 cells")
    assert [one for _, one in maker.make([Row(2, problem=problem)], NOW)] == [problem]


# Models

TWO = {"models": {"sorter": SORTER, "other": {"classes": ["a", "b"]}}}


def test_rows_may_be_of_several_models() -> None:
    rows = [PLAIN | {"model": "sorter", "region": "n"}, PLAIN | {"model": "other", "predicted_class": "a"}]
    messages = made(rows_maker(**TWO), *rows)
    assert [isinstance(one, dict) and one["model"] for one in messages] == ["sorter", "other"]


def test_rows_that_name_no_model_are_of_the_one_on_the_command_line() -> None:
    row = PLAIN | {"predicted_class": "a"}
    assert message(rows_maker(model="other", **TWO), row)["model"] == "other"


def test_rows_that_name_no_model_are_refused_if_there_are_several() -> None:
    assert refusal(rows_maker(**TWO), PLAIN).reason == "missing_field"


def test_rows_of_another_model_than_that_on_the_command_line_are_refused() -> None:
    assert refusal(rows_maker(model="other", **TWO), PLAIN | {"model": "sorter"}).reason == "other_model"


def test_a_model_that_is_not_configured_is_an_error_of_the_command_line() -> None:
    with pytest.raises(ConfigurationError, match="unknown model; configured: other, sorter"):
        rows_maker(model="none", **TWO)


# Columns


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("item_id", "must be FIELD=COLUMN"),
        ("uuid=item_id", "must be FIELD=COLUMN"),
        ("attributes.=x", "must be FIELD=COLUMN"),
        ("item_id=a", "is given twice"),
    ],
)
def test_an_option_that_names_no_field_is_an_error_of_the_command_line(option: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        rows_maker("item_id=b", option)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (["id", "predicted_class", "score"], "there is no column item_id among the 3 columns"),
        (["item_id", "score"], "there is no column predicted_class"),
        (["item_id", "predicted_class"], "there is no column score"),
        (["item_id", "probability.cat"], "there is no column probability.dog"),
        (["item_id", "probability.cat", "probability.dog", "probability.cow"], "probability.cow"),
        (["item_id", "item_id", "predicted_class", "score"], "more than one column item_id"),
    ],
)
def test_a_file_without_the_columns_is_refused_before_its_rows(columns: list[str], problem: str) -> None:
    with pytest.raises(UnusableFileError, match=problem):
        begin(rows_maker(), *columns)


def test_the_first_row_of_a_file_without_names_of_columns_is_not_printed() -> None:
    with pytest.raises(UnusableFileError, match="the first line of csv must name the columns") as error:
        begin(rows_maker(), "secret", "cat", "0.9")
    assert "secret" not in str(error.value)


def test_a_renamed_column_must_be_there() -> None:
    with pytest.raises(UnusableFileError, match=r"there is no column uuid \(item_id\)"):
        begin(rows_maker("item_id=uuid"), *PLAIN)


def test_two_columns_of_a_name_that_nobody_reads_are_no_error() -> None:
    begin(rows_maker(), *PLAIN, "", "")


def test_only_columns_that_are_needed_are_read() -> None:
    columns = [*PLAIN, "region", "note", "votes.x", "R"]
    assert set(rows_maker("attributes.r=R").used(columns)) == {*PLAIN, "region", "votes.x", "R"}


def test_columns_that_are_not_sent_are_named() -> None:
    maker = rows_maker()
    message(maker, PLAIN | {"region": "n", "Device": "x"})
    assert maker.notes() == ["columns that are not sent: Device"]


def test_an_attribute_of_a_grouping_that_has_no_column_is_named() -> None:
    maker = rows_maker()
    message(maker, PLAIN)
    assert maker.notes() == ["no column has attribute region; these predictions count in group __missing__"]


def test_times_that_will_count_as_another_time_are_counted() -> None:
    maker = rows_maker("attributes.region=r")
    times = [NOW - 90_000, NOW - 10, NOW + 10_000, NOW + 20_000]
    made(maker, *(PLAIN | {"time": str(time), "r": "n"} for time in times))
    assert maker.notes() == [
        "1 predictions are over 24 h old, and count as 24 h old; bounds.lateness_hours is the limit",
        "2 predictions have a time in the future, and count as of now",
    ]


CELLS = st.dictionaries(
    st.sampled_from(
        [*PLAIN, "time", "payload", "payload_uri", "probabilities", "probability.cat", "votes.x", "region"]
    ),
    st.text(max_size=5)
    | st.sampled_from(["cat", "dog", "0.5", "[0.5,0.5]", "{}"])
    | st.floats()
    | st.integers(),
)


@given(rows=st.lists(CELLS, max_size=5))
def test_whatever_is_sent_is_valid_by_the_contract(rows: Sequence[dict[str, Any]]) -> None:
    for one in made(rows_maker(), *rows, fixed=False):
        if isinstance(one, dict):
            Prediction.model_validate_json(json.dumps(one))
