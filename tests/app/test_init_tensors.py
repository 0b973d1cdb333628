"""`credence init --topic` of inference responses proposes which of their tensors are fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from connect_page import blocks, marked, section
from samples import CLASSES, Init, Proposed, Topic, rows

ROWS = 60
HEADERS = [("ce_specversion", b"1.0"), ("ce_type", b"org.kubeflow.serving.inference.response")]


def tensor(name: str, datatype: str, data: Sequence[Any], width: int = 1) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [len(data) // width, width], "data": data}


def predicted() -> list[str]:
    return [row["predicted_class"] for row in rows(ROWS)]


def probabilities(name: str = "output-0") -> dict[str, Any]:
    """Of all rows, in the order of the classes."""
    found = [
        row["score"] if each == row["predicted_class"] else (1 - row["score"]) / 2
        for row in rows(ROWS)
        for each in CLASSES
    ]
    return tensor(name, "FP64", found, len(CLASSES))


def respond(topic: Topic, *tensors: Mapping[str, Any], model: str = "animals") -> None:
    """Send one response, and a second one that is the same but for its id."""
    responses = [{"model_name": model, "id": f"{model}-{n}", "outputs": tensors} for n in range(2)]
    topic.send([json.dumps(each).encode() for each in responses], headers=HEADERS)


def tensors(proposed: Proposed) -> Mapping[str, str]:
    """Those of the proposal."""
    assert proposed.code == 0, proposed.error
    found: Mapping[str, str] = proposed.model["tensors"]
    return found


def test_the_only_rows_that_sum_to_1_are_the_probabilities(init: Init, topic: Topic) -> None:
    respond(topic, probabilities(), tensor("embedding", "FP32", [0.25] * ROWS * 2, 2))
    proposed = init(*topic.options(), "--classes", ",".join(CLASSES))
    assert tensors(proposed) == {"probabilities": "output-0"}
    assert "probabilities: output-0, its rows are numbers that sum to 1" in proposed.comments
    assert "not read: embedding" in proposed.comments
    assert f"{2 * ROWS} predictions, 0 refused" in init.check(proposed, "--sample", "100")[1]


def test_places_of_classes_are_not_taken_for_their_names(init: Init, topic: Topic) -> None:
    places = [CLASSES.index(name) for name in predicted()]
    respond(topic, tensor("predict", "INT64", places), probabilities("predict_proba"))
    proposed = init(*topic.options(), "--classes", ",".join(CLASSES))
    assert tensors(proposed) == {"probabilities": "predict_proba"}
    assert "predicted_class: tensor predict is not read: its integers are places" in proposed.comments


def test_a_class_and_its_score_are_found_by_usual_names(init: Init, topic: Topic) -> None:
    scores = [row["score"] for row in rows(ROWS)]
    regions = [row["region"] for row in rows(ROWS)]
    respond(
        topic,
        tensor("label", "BYTES", predicted()),
        tensor("confidence", "FP32", scores),
        tensor("attributes.region", "BYTES", regions),
    )
    proposed = init(*topic.options())
    assert tensors(proposed) == {"predicted_class": "label", "score": "confidence"}
    assert "region" in proposed.model["groupings"]
    assert f"{2 * ROWS} predictions, 0 refused" in init.check(proposed, "--sample", "100")[1]


def test_an_option_names_a_tensor(init: Init, topic: Topic) -> None:
    respond(topic, probabilities("a"), probabilities("b"))
    assert "also possible: --probabilities b" in init(*topic.options()).comments
    named = init(*topic.options(), "--probabilities", "b")
    assert tensors(named) == {"probabilities": "b"}
    absent = init(*topic.options(), "--probabilities", "c")
    assert absent.code == 2
    assert "--probabilities: there is no tensor c; the tensors are a (FP64 [60, 3]); b (FP64 [60, 3])" in (
        absent.error
    )


def test_responses_without_a_score_are_an_error_with_their_tensors(init: Init, topic: Topic) -> None:
    respond(topic, tensor("predict", "INT64", [0] * ROWS))
    proposed = init(*topic.options())
    assert proposed.code == 2
    assert "the tensors are predict (INT64 [60, 1]). Have the server return probabilities" in proposed.error


def test_responses_of_other_models_do_not_count(init: Init, topic: Topic) -> None:
    respond(topic, probabilities("a"), model="other")
    respond(topic, probabilities("b"))
    proposed = init(*topic.options(), "--model", "animals")
    assert tensors(proposed) == {"probabilities": "b"}


@pytest.mark.parametrize("server", ["KServe", "Triton", "MLServer", "Seldon Core"])
def test_the_records_of_model_servers_have_the_tensors_of_the_page(
    init: Init, topic: Topic, server: str
) -> None:
    record = json.loads(marked(f"record: {server}", "json"))
    headers = [(name, text.encode()) for name, text in record["headers"].items()]
    topic.send([json.dumps(record["value"]).encode()], headers=headers)
    proposed = init(*topic.options(), "--classes", "cat,dog,owl")
    (page,) = [text for text in blocks(section(server), "yaml") if text.startswith("# credence.yaml")]
    on_page = yaml.safe_load(page)["models"]["sorter"]["tensors"]
    assert {"probabilities": "probabilities"} | dict(tensors(proposed)) == on_page


def test_an_option_of_another_field_is_not_dropped(init: Init, topic: Topic) -> None:
    respond(topic, probabilities())
    proposed = init(*topic.options(), "--truth", "label")
    assert proposed.code == 2
    assert "--truth: there is no column label" in proposed.error


@pytest.mark.parametrize("data", ["[" * 900 + "]" * 900, f"[{10**400}, 0, 0]", "[true, null, {}]"])
def test_numbers_that_cannot_be_read_are_no_probabilities(init: Init, topic: Topic, data: str) -> None:
    hostile = '{"name": "x", "datatype": "FP64", "shape": [1, 3], "data": ' + data + "}"
    outputs = f"[{json.dumps(probabilities())}, {hostile}]"
    value = f'{{"model_name": "animals", "id": "r", "outputs": {outputs}}}'
    topic.send([value.encode()], headers=HEADERS)
    assert tensors(init(*topic.options())) == {"probabilities": "output-0"}
