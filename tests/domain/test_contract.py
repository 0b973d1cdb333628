"""The wire contract: models, JSON Schemas, AsyncAPI document and page say the same."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from service.app.docgen.contract import contract_files
from service.app.docgen.messages import (
    asyncapi_document,
    header_example,
    message_examples,
    message_schema,
    schema_file,
)
from service.config.settings import Topics
from service.domain.messages import EXAMPLES, MESSAGES, Label, Prediction, cloudevents_headers
from service.domain.open_inference import (
    RESPONSE_EXAMPLE,
    RESPONSE_EXAMPLE_ROWS,
    TENSOR_RULES,
    InferenceResponse,
)

COMMITTED = Path(__file__).parents[2] / "docs" / "contract"
ABSENT = object()

PLAIN = {"model": "digits", "item_id": "a", "predicted_class": "7", "score": 0.5}
SPREAD = {"model": "digits", "item_id": "a", "probabilities": [0.25, 0.75]}
ANSWER = {"request_id": "r", "model": "digits", "item_id": "a", "kind": "answer", "true_class": "7"}
UNREQUESTED = {"model": "digits", "item_id": "a", "true_class": "7"}
OWN = {"predicted_class": "1", "score": 0.9, "time": "2026-01-31T12:00:00Z"}
REQUEST = EXAMPLES["LabelRequest"]

ACCEPTED: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("predicted class and score", "Prediction", PLAIN, {}),
    ("probabilities alone", "Prediction", SPREAD, {}),
    ("probabilities and a predicted class", "Prediction", SPREAD, {"predicted_class": "7"}),
    (
        "probabilities, predicted class and score",
        "Prediction",
        SPREAD,
        {"predicted_class": "7", "score": 0.1},
    ),
    ("a score of 0", "Prediction", PLAIN, {"score": 0}),
    ("a score of 1", "Prediction", PLAIN, {"score": 1}),
    ("a score a little over 1", "Prediction", PLAIN, {"score": 1.00009}),
    ("a score a little under 0", "Prediction", PLAIN, {"score": -0.00009}),
    ("a probability a little over 1", "Prediction", SPREAD, {"probabilities": [-0.00005, 1.00005]}),
    ("probabilities that miss 1 by rounding", "Prediction", SPREAD, {"probabilities": [0.25, 0.745]}),
    ("an unknown key", "Prediction", PLAIN, {"colour": "red"}),
    ("null for what is absent", "Prediction", PLAIN, {"probabilities": None, "time": None, "votes": None}),
    ("an inline payload of any JSON", "Prediction", PLAIN, {"payload": {"pixels": [[0, 1]]}}),
    ("a payload beside a null address", "Prediction", PLAIN, {"payload": "text", "payload_uri": None}),
    ("an address beside a null payload", "Prediction", PLAIN, {"payload": None, "payload_uri": "s3://b/k"}),
    ("attributes", "Prediction", PLAIN, {"attributes": {"camera": "dock", "empty": ""}}),
    ("votes", "Prediction", PLAIN, {"votes": {"first": "7", "second": "1"}}),
    ("the longest item id", "Prediction", PLAIN, {"item_id": "x" * 256}),
    ("a time with an offset", "Prediction", PLAIN, {"time": "2026-01-31T13:00:00+01:00"}),
    ("a label without a kind", "Label", ANSWER, {"kind": ABSENT}),
    ("a correction with a class", "Label", ANSWER, {"kind": "correction"}),
    ("a skip without a class", "Label", ANSWER, {"kind": "skip", "true_class": ABSENT}),
    ("a retraction with a null class", "Label", ANSWER, {"kind": "retraction", "true_class": None}),
    ("an annotator", "Label", ANSWER, {"annotator": "ana"}),
    ("an unknown key in a label", "Label", ANSWER, {"confidence": 0.9}),
    ("a label without a request", "Label", UNREQUESTED, {}),
    ("a label with a null request", "Label", UNREQUESTED, {"request_id": None}),
    ("a correction without a request", "Label", UNREQUESTED, {"kind": "correction"}),
    ("a retraction without a request", "Label", UNREQUESTED, {"kind": "retraction", "true_class": ABSENT}),
    ("an inclusion probability", "Label", UNREQUESTED, {"probability": 0.05}),
    ("the prediction of a label", "Label", UNREQUESTED, {"prediction": OWN}),
    (
        "attributes of the prediction of a label",
        "Label",
        UNREQUESTED,
        {"prediction": OWN | {"attributes": {"camera": "dock"}}},
    ),
    (
        "a revealed prediction",
        "LabelRequest",
        REQUEST,
        {"prediction": {"predicted_class": "1", "score": 0.9}},
    ),
]

REJECTED: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("no model", "Prediction", PLAIN, {"model": ABSENT}),
    ("an empty model", "Prediction", PLAIN, {"model": ""}),
    ("no item id", "Prediction", PLAIN, {"item_id": ABSENT}),
    ("an empty item id", "Prediction", PLAIN, {"item_id": ""}),
    ("an over-long item id", "Prediction", PLAIN, {"item_id": "x" * 257}),
    ("a number as item id", "Prediction", PLAIN, {"item_id": 17}),
    ("neither score nor probabilities", "Prediction", PLAIN, {"score": ABSENT}),
    ("a null score without probabilities", "Prediction", PLAIN, {"score": None}),
    ("a score without a predicted class", "Prediction", PLAIN, {"predicted_class": ABSENT}),
    ("a score over the tolerance", "Prediction", PLAIN, {"score": 1.001}),
    ("a score under the tolerance", "Prediction", PLAIN, {"score": -0.001}),
    ("a score as text", "Prediction", PLAIN, {"score": "0.5"}),
    ("a score as a boolean", "Prediction", PLAIN, {"score": True}),
    ("a predicted class as a number", "Prediction", PLAIN, {"predicted_class": 7}),
    ("a single probability", "Prediction", SPREAD, {"probabilities": [1.0]}),
    ("a probability over the tolerance", "Prediction", SPREAD, {"probabilities": [0.0, 1.001]}),
    ("a payload and an address", "Prediction", PLAIN, {"payload": 1, "payload_uri": "s3://b/k"}),
    ("an empty address", "Prediction", PLAIN, {"payload_uri": ""}),
    ("an attribute that is no text", "Prediction", PLAIN, {"attributes": {"camera": 3}}),
    ("an attribute without a name", "Prediction", PLAIN, {"attributes": {"": "dock"}}),
    ("a vote for an empty class", "Prediction", PLAIN, {"votes": {"first": ""}}),
    ("a time as a number", "Prediction", PLAIN, {"time": 1769860800}),
    ("a skip without a request", "Label", UNREQUESTED, {"kind": "skip", "true_class": ABSENT}),
    ("an answer without request and class", "Label", UNREQUESTED, {"true_class": ABSENT}),
    ("an inclusion probability of a requested label", "Label", ANSWER, {"probability": 0.05}),
    ("a prediction in a requested label", "Label", ANSWER, {"prediction": OWN}),
    ("an inclusion probability of 0", "Label", UNREQUESTED, {"probability": 0}),
    ("an inclusion probability over 1", "Label", UNREQUESTED, {"probability": 1.1}),
    (
        "a prediction of a label without a score",
        "Label",
        UNREQUESTED,
        {"prediction": {"predicted_class": "1"}},
    ),
    ("a prediction of a label with a score over 1", "Label", UNREQUESTED, {"prediction": OWN | {"score": 2}}),
    (
        "a prediction of a label with a bad attribute",
        "Label",
        UNREQUESTED,
        {"prediction": OWN | {"attributes": {"camera": 3}}},
    ),
    ("an over-long request id", "Label", ANSWER, {"request_id": "x" * 65}),
    ("an unknown kind", "Label", ANSWER, {"kind": "maybe"}),
    ("an answer without a class", "Label", ANSWER, {"true_class": ABSENT}),
    ("an answer with a null class", "Label", ANSWER, {"true_class": None}),
    ("a kindless label without a class", "Label", ANSWER, {"kind": ABSENT, "true_class": ABSENT}),
    ("a correction without a class", "Label", ANSWER, {"kind": "correction", "true_class": ABSENT}),
    ("a skip with a class", "Label", ANSWER, {"kind": "skip"}),
    ("a retraction with a class", "Label", ANSWER, {"kind": "retraction"}),
    ("an attempt of 0", "LabelRequest", REQUEST, {"attempt": 0}),
    ("no deadline", "LabelRequest", REQUEST, {"deadline": ABSENT}),
    ("no classes", "LabelRequest", REQUEST, {"classes": ABSENT}),
]

BEYOND_SCHEMA: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("probabilities that sum to less than 1", "Prediction", SPREAD, {"probabilities": [0.25, 0.7]}),
    ("probabilities that sum to more than 1", "Prediction", SPREAD, {"probabilities": [0.35, 0.75]}),
    ("a time without an offset", "Prediction", PLAIN, {"time": "2026-01-31T12:00:00"}),
    ("a time that is none", "Label", ANSWER, {"time": "yesterday"}),
]


def changed(message: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**message, **change}.items() if value is not ABSENT}


def model_accepts(name: str, message: object) -> bool:
    try:
        MESSAGES[name].model_validate_json(json.dumps(message))
    except ValidationError:
        return False
    return True


def schema_accepts(name: str, message: object) -> bool:
    return bool(Draft202012Validator(message_schema(name)).is_valid(message))


def cases(
    listed: list[tuple[str, str, dict[str, Any], dict[str, Any]]],
) -> list[Any]:
    return [pytest.param(name, changed(base, change), id=title) for title, name, base, change in listed]


@pytest.mark.parametrize(("name", "message"), cases(ACCEPTED))
def test_the_model_accepts_a_good_message(name: str, message: dict[str, Any]) -> None:
    assert model_accepts(name, message)


@pytest.mark.parametrize(("name", "message"), cases(ACCEPTED))
def test_the_schema_accepts_a_good_message(name: str, message: dict[str, Any]) -> None:
    assert schema_accepts(name, message)


@pytest.mark.parametrize(("name", "message"), cases([*REJECTED, *BEYOND_SCHEMA]))
def test_the_model_rejects_a_bad_message(name: str, message: dict[str, Any]) -> None:
    assert not model_accepts(name, message)


@pytest.mark.parametrize(("name", "message"), cases(REJECTED))
def test_the_schema_rejects_a_bad_message(name: str, message: dict[str, Any]) -> None:
    assert not schema_accepts(name, message)


def test_a_score_that_is_not_a_number_is_rejected() -> None:
    with pytest.raises(ValidationError):
        Prediction.model_validate_json(json.dumps({**PLAIN, "score": float("nan")}))


def test_an_infinite_score_is_rejected() -> None:
    with pytest.raises(ValidationError):
        Prediction.model_validate_json(json.dumps({**PLAIN, "score": float("inf")}))


def test_a_message_cannot_be_changed() -> None:
    prediction = Prediction.model_validate_json(json.dumps(PLAIN))
    with pytest.raises(ValidationError, match="frozen"):
        prediction.score = 1.0


def test_a_label_is_an_answer_unless_it_says_otherwise() -> None:
    label = Label.model_validate_json(json.dumps(changed(ANSWER, {"kind": ABSENT})))
    assert label.kind == "answer"


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_has_an_example(name: str) -> None:
    assert message_examples(name)[0] == EXAMPLES[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_every_example_is_valid_for_its_model(name: str) -> None:
    assert all(model_accepts(name, example) for example in message_examples(name))


@pytest.mark.parametrize("name", MESSAGES)
def test_every_example_is_valid_for_its_schema(name: str) -> None:
    assert all(schema_accepts(name, example) for example in message_examples(name))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_survives_being_written_and_read(name: str) -> None:
    for example in message_examples(name):
        message = MESSAGES[name].model_validate_json(json.dumps(example))
        assert MESSAGES[name].model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize("name", MESSAGES)
def test_every_schema_is_valid_draft_2020_12(name: str) -> None:
    Draft202012Validator.check_schema(message_schema(name))


@pytest.mark.parametrize("name", MESSAGES)
def test_every_schema_describes_itself(name: str) -> None:
    schema = message_schema(name)
    assert schema["title"] == name
    assert schema["description"]
    assert schema["examples"]


def test_every_schema_has_an_id_of_its_own() -> None:
    assert len({message_schema(name)["$id"] for name in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_says_what_it_means(name: str) -> None:
    schema = message_schema(name)
    for part in [schema, *schema.get("$defs", {}).values()]:
        assert [key for key, field in part["properties"].items() if not field.get("description")] == []


def test_cloudevents_headers_are_those_of_binary_mode() -> None:
    headers = cloudevents_headers(
        event_type="t", event_id="i", source="/s", time=datetime(2026, 1, 31, 12, tzinfo=UTC)
    )
    assert headers == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"i"),
        ("ce_source", b"/s"),
        ("ce_type", b"t"),
        ("ce_time", b"2026-01-31T12:00:00+00:00"),
        ("content-type", b"application/json"),
    ]


@pytest.mark.parametrize("name", MESSAGES)
def test_the_headers_of_an_example_fit_their_schema(name: str) -> None:
    Draft202012Validator(asyncapi_message(name)["headers"]).validate(header_example(name))


def test_every_header_is_required_on_what_credence_sends() -> None:
    assert asyncapi_message("LabelRequest")["headers"]["required"] == list(header_example("LabelRequest"))


@pytest.mark.parametrize("name", ["Prediction", "Label"])
def test_no_header_is_required_on_what_credence_reads(name: str) -> None:
    assert Draft202012Validator(asyncapi_message(name)["headers"]).is_valid({})


def test_another_event_type_does_not_fit_the_headers() -> None:
    assert not Draft202012Validator(asyncapi_message("Label")["headers"]).is_valid(
        {"ce_type": "dev.credence.prediction.v1"}
    )


def references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for child in node.values() for found in references(child)]
    if isinstance(node, list):
        return [found for child in node for found in references(child)]
    return []


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    document = asyncapi_document()
    for reference in references(document):
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target


def test_the_asyncapi_document_has_the_default_topics() -> None:
    channels = asyncapi_document()["channels"].values()
    assert {channel["address"] for channel in channels} == set(Topics().model_dump().values())


def test_the_asyncapi_document_is_seen_from_credence() -> None:
    document = asyncapi_document()
    actions = {
        operation["channel"]["$ref"].rsplit("/", 1)[-1]: operation["action"]
        for operation in document["operations"].values()
    }
    assert actions == {
        "predictions": "receive",
        "label-requests": "send",
        "labels": "receive",
        "dead-letters": "send",
    }


def asyncapi_message(name: str) -> dict[str, Any]:
    message: dict[str, Any] = asyncapi_document()["components"]["messages"][name]
    return message


ASYNCAPI_MESSAGES = [*MESSAGES, "PredictionBatch", "InferenceResponse", "DeadLetter"]


@pytest.mark.parametrize("name", ASYNCAPI_MESSAGES)
def test_every_payload_example_of_the_asyncapi_document_fits_its_schema(name: str) -> None:
    message = asyncapi_message(name)
    schema = {**message["payload"], "components": asyncapi_document()["components"]}
    for example in message["examples"]:
        Draft202012Validator(schema).validate(example["payload"])


@pytest.mark.parametrize("name", ASYNCAPI_MESSAGES)
def test_every_header_example_of_the_asyncapi_document_fits_its_schema(name: str) -> None:
    message = asyncapi_message(name)
    for example in message["examples"]:
        Draft202012Validator(message["headers"]).validate(example["headers"])


@pytest.mark.parametrize("name", ASYNCAPI_MESSAGES)
def test_every_message_of_the_asyncapi_document_describes_its_key(name: str) -> None:
    assert asyncapi_message(name)["bindings"]["kafka"]["key"]["description"]


def test_a_predictions_record_is_one_prediction_or_an_array_of_them_or_a_response() -> None:
    messages = asyncapi_document()["channels"]["predictions"]["messages"]
    assert set(messages) == {"Prediction", "PredictionBatch", "InferenceResponse"}
    assert asyncapi_message("PredictionBatch")["payload"]["type"] == "array"


def test_the_page_shows_every_field_of_every_message() -> None:
    page = contract_files()["README.md"]
    fields = {field for model in MESSAGES.values() for field in model.model_fields}
    assert [field for field in fields if f"| `{field}` |" not in page] == []


def test_the_page_shows_every_tensor_that_is_read() -> None:
    page = contract_files()["README.md"]
    assert [name for name in (*TENSOR_RULES, "attributes.<name>") if f"| `{name}` |" not in page] == []


def test_the_example_of_a_response_is_valid() -> None:
    text = json.dumps(RESPONSE_EXAMPLE)
    assert len(InferenceResponse.model_validate_json(text).outputs) == 4


def test_the_rows_of_the_example_of_a_response_are_valid_predictions() -> None:
    assert all(model_accepts("Prediction", row) for row in RESPONSE_EXAMPLE_ROWS)


def test_every_dead_letter_header_is_explained_beside_the_reasons() -> None:
    page = (COMMITTED.parent / "dead-letters.md").read_text(encoding="utf-8")
    headers = asyncapi_message("DeadLetter")["headers"]["properties"]
    assert [header for header in headers if f"| `{header}` |" not in page] == []


def test_the_contract_has_a_schema_for_every_message_and_its_documents() -> None:
    documents = {"asyncapi.json", "vendor-api.openapi.json", "ingestion-api.openapi.json", "README.md"}
    assert set(contract_files()) == {*map(schema_file, MESSAGES), *documents}


def test_every_file_ends_with_one_line_break() -> None:
    for name, text in contract_files().items():
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name


def test_making_the_contract_again_gives_the_same_text() -> None:
    assert contract_files() == contract_files()


def test_shortening_lists_does_not_change_the_documents() -> None:
    files = contract_files()
    assert json.loads(files["asyncapi.json"]) == asyncapi_document()
    assert all(json.loads(files[schema_file(name)]) == message_schema(name) for name in MESSAGES)


def test_the_committed_contract_is_current() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in COMMITTED.iterdir()}
    assert committed == contract_files()
