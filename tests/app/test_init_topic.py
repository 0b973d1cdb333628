"""`credence init --topic` samples the newest records of a real broker, decoded as consumers decode them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from samples import Init, Topic, rows

RESPONSE_HEADERS = [("ce_specversion", b"1.0"), ("ce_type", b"org.kubeflow.serving.inference.response")]


def message(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a native message; its true class is not part of it."""
    fields = {key: value for key, value in row.items() if key not in ("region", "true_class")}
    return {"model": "animals", **fields, "attributes": {"region": row["region"]}}


def test_a_topic_becomes_a_configuration_that_reads_it(init: Init, topic: Topic) -> None:
    topic.send([json.dumps(message(row)).encode() for row in rows(300)])
    proposed = init(*topic.options())
    assert init.check(proposed)[0] == 0
    document = yaml.safe_load(proposed.text)
    assert document["kafka"] == {
        "bootstrap_servers": [topic.server],
        "topics": {"predictions": topic.name},
    }
    assert [*document["models"]] == ["animals"]
    assert proposed.model["groupings"]["region"] == {"by": "attribute", "attribute": "region"}
    assert "300 predictions, of records in equal parts from all partitions" in proposed.comments


def test_the_newest_records_of_all_partitions_are_sampled(init: Init, topic: Topic) -> None:
    old = [message(row | {"region": "old"}) for row in rows(200)]
    new = [message(row) for row in rows(100)]
    topic.send([json.dumps(each).encode() for each in [*old, *new]])
    proposed = init(*topic.options(100))
    assert "100 predictions" in proposed.comments
    assert "3 values; the most frequent" in proposed.comments
    more = init(*topic.options(120)).comments
    assert "120 predictions" in more
    assert "4 values; the most frequent" in more


def test_arrays_and_inference_responses_are_decoded(init: Init, topic: Topic) -> None:
    found = rows(120)
    topic.send([json.dumps([message(row) for row in found[:40]]).encode()])
    response = {
        "model_name": "animals",
        "id": "r1",
        "outputs": [
            {"name": name, "datatype": kind, "shape": [80], "data": [row[key] for row in found[40:]]}
            for name, kind, key in (
                ("predicted_class", "BYTES", "predicted_class"),
                ("score", "FP64", "score"),
                ("attributes.region", "BYTES", "region"),
            )
        ],
    }
    topic.send([json.dumps(response).encode()], headers=RESPONSE_HEADERS)
    proposed = init(*topic.options())
    assert "120 predictions" in proposed.comments
    assert "region" in proposed.model["groupings"]


def test_bad_records_are_counted_with_the_place_of_the_first(init: Init, topic: Topic) -> None:
    topic.send([b"{", *(json.dumps(message(row)).encode() for row in rows(99))])
    said = init(*topic.options()).comments
    assert "99 predictions" in said
    assert f"1 cannot be read and were left out, the first at prediction 50: record {topic.name}/0/0" in said


def test_an_empty_or_absent_topic_is_an_error(init: Init, topic: Topic) -> None:
    assert "there are no rows; a sample needs predictions" in init(*topic.options()).error
    topic.name = "absent"
    proposed = init(*topic.options())
    assert proposed.code == 1
    assert "topic absent does not exist" in proposed.error


def test_an_unreachable_broker_is_an_error_with_its_address(init: Init) -> None:
    proposed = init("--topic", "t", "--bootstrap-servers", "127.0.0.1:1")
    assert proposed.code == 1
    assert "Cannot connect to Kafka at 127.0.0.1:1" in proposed.error


def test_the_environment_names_the_broker(init: Init, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    topic.send([json.dumps(message(row)).encode() for row in rows(50)])
    monkeypatch.setenv("CREDENCE_KAFKA__BOOTSTRAP_SERVERS", f"[{topic.server}]")
    proposed = init("--topic", topic.name)
    assert yaml.safe_load(proposed.text)["kafka"]["bootstrap_servers"] == [topic.server]
