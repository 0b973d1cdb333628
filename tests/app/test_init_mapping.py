"""`credence init --topic` of records of another shape proposes where their fields are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from registry_server import Server
from samples import CLASSES, Init, Proposed, Topic, rows, write_jsonl
from schema_values import avro

COUNT = 120
Row = dict[str, Any]


def nested(row: Row, number: int) -> Row:
    """A record as on docs/formats.md, of a row of predictions."""
    return {
        "request": {"id": number, "meta": {"region": row["region"]}},
        "output": [{"label": row["predicted_class"], "confidence": row["score"]}],
        "scored_at": 1_769_860_800_000 + number,
    }


def flat(row: Row, number: int) -> Row:
    return {
        "uuid": f"u-{number}",
        "predicted_label": row["predicted_class"],
        "probability": row["score"],
        "event_time": "2026-01-31T12:00:00Z",
        "region": row["region"],
    }


def by_class(row: Row, number: int) -> Row:
    """Probabilities by class name, and a model that names itself."""
    others = (1 - row["score"]) / 2
    return {
        "model_name": "animals",
        "prediction_id": number,
        "class_scores": {
            name: row["score"] if name == row["predicted_class"] else others for name in CLASSES
        },
        "features": {"region": row["region"]},
    }


def sent(topic: Topic, shape: Callable[[Row, int], Any], **options: Any) -> None:
    topic.send([json.dumps(shape(row, n)).encode() for n, row in enumerate(rows(COUNT))], **options)


def mapping(proposed: Proposed) -> Row:
    """The mapping of a proposal."""
    assert proposed.code == 0, proposed.error
    found: Row = yaml.safe_load(proposed.text)["kafka"]["mapping"]
    return found


def read_back(init: Init, proposed: Proposed) -> str:
    """What `credence check --sample` reads with the proposal."""
    return init.check(proposed, "--sample", "1000")[1]


@pytest.mark.parametrize("shape", [nested, flat, by_class])
def test_every_record_of_another_shape_is_read_as_proposed(
    init: Init, topic: Topic, shape: Callable[[Row, int], Any]
) -> None:
    sent(topic, shape)
    proposed = init(*topic.options())
    assert f"{COUNT} predictions, 0 refused" in read_back(init, proposed)
    assert proposed.model["groupings"]["region"] == {"by": "attribute", "attribute": "region"}
    assert proposed.model["classes"] == list(CLASSES)


def test_nested_fields_are_found_by_usual_names_and_each_comment_says_why(init: Init, topic: Topic) -> None:
    sent(topic, nested)
    proposed = init(*topic.options())
    assert mapping(proposed) == {
        "model": {"value": topic.name},
        "item_id": "$.request.id",
        "predicted_class": "$.output[0].label",
        "score": "$.output[0].confidence",
        "time": {"path": "$.scored_at", "unit": "ms"},
        "attributes": {"region": "$.request.meta.region"},
    }
    assert "No field names the model, so all records are of this one." in proposed.comments
    assert proposed.comments.count("its name is usual for it") >= 4
    assert "check each line" in proposed.comments


def test_probabilities_by_class_name_are_the_classes(init: Init, topic: Topic) -> None:
    sent(topic, by_class)
    found = mapping(init(*topic.options()))
    assert found["probabilities"] == "$.class_scores"
    assert found["model"] == "$.model_name"
    assert not found.keys() & {"predicted_class", "score"}


def test_an_option_names_the_path_of_a_field(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: flat(row, n) | {"guess": row["predicted_class"]})
    assert mapping(init(*topic.options()))["predicted_class"] == "$.predicted_label"
    named = init(*topic.options(), "--predicted", "$.guess")
    assert mapping(named)["predicted_class"] == "$.guess"
    assert "named by --predicted" in named.comments


def test_other_fields_with_a_usual_name_are_mentioned(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: flat(row, n) | {"request": {"id": f"r-{n}"}})
    assert "also possible: --item $.uuid" in init(*topic.options()).comments


def test_a_field_that_predictions_need_must_be_named(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: {"id": n, "guess": row["predicted_class"], "certainty": row["score"]})
    proposed = init(*topic.options())
    assert proposed.code == 2
    assert "no column is the predicted class" in proposed.error
    assert "$.guess" in proposed.error
    named = init(*topic.options(), "--predicted", "$.guess", "--score", "$.certainty")
    assert f"{COUNT} predictions, 0 refused" in read_back(init, named)


def test_the_key_is_the_item_if_no_field_is(init: Init, topic: Topic) -> None:
    def keyless(row: Row, _: int) -> Row:
        return {"label": row["predicted_class"], "score": row["score"]}

    sent(topic, keyless)
    refused = init(*topic.options())
    assert refused.code == 2
    assert "--item: no field of the records is the id of the item" in refused.error
    topic.renew()
    sent(topic, keyless, keys=[f"k-{n}".encode() for n in range(COUNT)])
    assert mapping(init(*topic.options()))["item_id"] == "$key"


def test_headers_are_attributes(init: Init, topic: Topic) -> None:
    sent(topic, flat, headers=[("x-host", b"gate-3")])
    sent(topic, lambda row, n: flat(row, n + COUNT), headers=[("x-host", b"gate-4")])
    found = mapping(init(*topic.options()))
    assert found["attributes"]["x-host"] == "$headers.x-host"


def test_a_list_of_which_the_first_element_alone_is_read_is_a_warning(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: nested(row, n) | {"output": nested(row, n)["output"] * 2})
    assert "WARNING: $.output has up to 2 elements, and the first alone is read" in (
        init(*topic.options()).comments
    )


def test_times_in_several_units_are_not_the_time(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: nested(row, n) | {"scored_at": 1_769_860_800 * (1_000 if n % 2 else 1)})
    proposed = init(*topic.options())
    assert "time" not in mapping(proposed)
    assert "$.scored_at is not taken: some of its values are times in another unit, or as text" in (
        proposed.comments
    )


def test_a_time_under_another_name_has_its_unit_too(init: Init, topic: Topic) -> None:
    def shape(row: Row, number: int) -> Row:
        return {name: value for name, value in flat(row, number).items() if name != "event_time"} | {
            "emitted": 1_769_860_800_000 + number
        }

    sent(topic, shape)
    proposed = init(*topic.options(), "--time", "$.emitted")
    assert mapping(proposed)["time"] == {"path": "$.emitted", "unit": "ms"}
    assert "all of the first 120 sampled records are used" in proposed.comments


def test_probabilities_in_several_fields_cannot_be_mapped(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: flat(row, n) | {f"p_{name}": 1 / 3 for name in CLASSES})
    error = init(*topic.options(), "--probabilities", "$.p_").error
    assert (
        "--probabilities: no field is $.p_, and a mapping reads all probabilities from one; the columns"
        in error
    )


def test_records_that_are_no_objects_are_counted(init: Init, topic: Topic) -> None:
    values: Sequence[bytes] = [json.dumps(flat(row, n)).encode() for n, row in enumerate(rows(COUNT))]
    topic.send([values[0], b"{", *values[1:]])
    proposed = init(*topic.options())
    assert "1 cannot be read and were left out" in proposed.comments
    assert mapping(proposed)["item_id"] == "$.uuid"


def test_the_rows_of_one_model_are_taken_by_the_field_that_names_it(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: by_class(row, n) | {"model_name": "other" if n % 2 else "animals"})
    assert "--model: the rows are of several models (animals, other)" in init(*topic.options()).error
    proposed = init(*topic.options(), "--model", "animals")
    assert [*yaml.safe_load(proposed.text)["models"]] == ["animals"]
    assert f"{COUNT // 2} of other models were left out" in proposed.comments


def test_a_number_of_hundreds_of_digits_is_no_time(init: Init, topic: Topic) -> None:
    sent(topic, lambda row, n: nested(row, n) | {"scored_at": 10**400})
    assert "time" not in mapping(init(*topic.options()))


def test_data_of_cloud_events_is_mapped(init: Init, topic: Topic) -> None:
    def event(row: Row, number: int) -> Row:
        attributes = {
            "specversion": "1.0",
            "id": str(number),
            "source": "/gate",
            "type": "com.example.scored",
        }
        return attributes | {"data": flat(row, number)}

    sent(topic, event, headers=[("content-type", b"application/cloudevents+json")])
    assert f"{COUNT} predictions, 0 refused" in read_back(init, init(*topic.options()))


AVRO = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {"name": "uuid", "type": "string"},
        {"name": "predicted_label", "type": {"type": "enum", "name": "Class", "symbols": list(CLASSES)}},
        {"name": "probability", "type": "double"},
        {"name": "event_time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "region", "type": ["null", "string"]},
    ],
}


@pytest.fixture
def registry() -> Iterator[Server]:
    running = Server()
    running.answers["/schemas/ids/1"] = 200, {"schema": json.dumps(AVRO), "schemaType": "AVRO"}
    yield running
    running.close()


def test_values_of_a_schema_registry_are_mapped(
    init: Init, topic: Topic, registry: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    topic.send([avro(AVRO, flat(row, n) | {"event_time": now}) for n, row in enumerate(rows(COUNT))])
    monkeypatch.setenv("CREDENCE_KAFKA__SCHEMA_REGISTRY__URL", registry.url)
    proposed = init(*topic.options())
    assert yaml.safe_load(proposed.text)["kafka"]["schema_registry"] == {"url": registry.url}
    assert mapping(proposed)["time"] == "$.event_time"
    monkeypatch.delenv("CREDENCE_KAFKA__SCHEMA_REGISTRY__URL")
    assert f"{COUNT} predictions, 0 refused" in read_back(init, proposed)


def test_records_of_a_topic_may_be_in_a_file(init: Init, topic: Topic) -> None:
    records = [nested(row, n) for n, row in enumerate(rows(COUNT))]
    proposed = init(write_jsonl(init.folder / "scores.jsonl", records), "--topic", topic.name)
    sent(topic, nested)
    assert mapping(proposed) == mapping(init(*topic.options()))
    assert f"{COUNT} predictions, of its lines" in proposed.comments
    assert "predictions send" not in proposed.comments
    absent = init("absent.jsonl", "--topic", topic.name)
    assert absent.code == 1
    assert "absent.jsonl: cannot be read" in absent.error
