"""What a model passes to `log` is sent as the contract says, or is refused with the name of the argument."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from test_client_producer import CLASSES, NOBODY

from service.client import Producer
from service.client.outbox import Outbox
from service.domain.messages import Prediction


def sent(**arguments: Any) -> dict[str, Any]:
    """The message of one prediction."""
    producer = Producer("sorter", kafka=NOBODY, strict=True, classes=arguments.pop("classes", CLASSES))
    outbox = Outbox(most_records=1, most_bytes=10_000)
    producer._outbox = outbox
    assert producer.log(arguments.pop("item_id", "a"), **arguments)
    (record,) = outbox.take(most_records=1, most_bytes=10_000, seconds=0)
    producer.close(timeout=0)
    message: dict[str, Any] = json.loads(record.value)
    Prediction.model_validate_json(record.value)
    assert record.key == message["item_id"].encode()
    return message


def test_probabilities_by_class_are_sent_in_the_order_of_the_classes() -> None:
    message = sent(probabilities={"owl": 0.7, "cat": 0.2, "dog": 0.1})
    assert message["probabilities"] == [0.2, 0.1, 0.7]
    assert (message["predicted_class"], message["score"]) == ("owl", 0.7)


def test_a_series_is_read_by_its_index_of_classes() -> None:
    message = sent(probabilities=ByClass({"owl": 0.7, "cat": 0.2, "dog": 0.1}))
    assert message["probabilities"] == [0.2, 0.1, 0.7]


def test_a_class_other_than_the_most_probable_one_keeps_its_own_probability_as_score() -> None:
    message = sent(probabilities=[0.2, 0.1, 0.7], predicted="cat")
    assert (message["predicted_class"], message["score"]) == ("cat", 0.2)


def test_numbers_of_numpy_serve_as_ids_classes_and_attributes() -> None:
    classes = np.array([0, 1, 7])
    message = sent(
        item_id=np.int64(4711),
        classes=classes,
        probabilities=np.array([0.1, 0.2, 0.7], dtype=np.float32),
        predicted=classes[2],
        attributes={"shift": np.int8(2)},
    )
    assert message["item_id"] == "4711"
    assert message["predicted_class"] == "7"
    assert message["attributes"] == {"shift": "2"}


def test_a_prediction_has_the_time_at_which_it_was_logged() -> None:
    assert "time" in sent(predicted="cat", score=0.9)


class Hostile:
    """Raises when it is read, as tensors on a device that is lost do."""

    def __float__(self) -> float:
        raise RuntimeError

    def __index__(self) -> int:
        raise RuntimeError

    def tolist(self) -> list[float]:
        raise RuntimeError


class ByClass:
    """Has names and values as a Series of pandas has."""

    def __init__(self, values: dict[str, float]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def tolist(self) -> list[float]:
        return list(self._values.values())

    def to_dict(self) -> dict[str, float]:
        return self._values


BAD: list[tuple[dict[str, Any], str]] = [
    ({"predicted": "cat"}, "give predicted_class and score, or probabilities"),
    ({"predicted": "cat", "score": 1.5}, "score: must be at most 1.0001"),
    ({"predicted": "cat", "score": float("nan")}, "score: must be a finite number"),
    ({"predicted": "cat", "score": "high"}, "score: must be a number"),
    ({"predicted": 0.5, "score": 0.9}, "predicted: must be text or a whole number, but is of type float"),
    ({"probabilities": [0.5, 0.5]}, "probabilities: must be 3 numbers, but are 2"),
    ({"probabilities": [[0.5, 0.3, 0.2]]}, "probabilities: must be a number, but is of type list"),
    ({"probabilities": {"cat": 0.5, "dog": 0.5}}, "probabilities: must have these classes: cat, dog, owl"),
    ({"probabilities": [0.5, 0.5, 0.5]}, "probabilities must sum to 1"),
    (
        {"predicted": "cat", "score": 0.9, "attributes": {"region": None}},
        "attributes['region']: must be text",
    ),
    ({"predicted": "cat", "score": 0.9, "payload": object()}, "payload"),
    ({"predicted": "cat", "score": 0.9, "payload": [float("nan")]}, "payload: must be JSON"),
    ({"predicted": "cat", "score": 0.9, "payload": {"a": "\ud800"}}, "payload: must be JSON"),
    ({"predicted": "cat", "score": 0.9, "payload": 10**5_000}, "payload: must be JSON"),
    ({"predicted": "cat", "score": 0.9, "attributes": "north"}, "attributes: must be a mapping by name"),
    ({"predicted": "cat", "score": 0.9, "attributes": [("a", "b")]}, "attributes: must be a mapping by name"),
    ({"predicted": "cat", "score": 0.9, "attributes": {"a": "\ud800"}}, "attributes['a']: must be text in"),
    ({"predicted": "cat", "score": 0.9, "votes": ["cat"]}, "votes: must be a mapping by name"),
    ({"predicted": "cat", "score": 0.9, "votes": {"m": "cow"}}, "votes['m']: must be one of these classes"),
    ({"predicted": "cow", "score": 0.9}, "predicted: must be one of these classes: cat, dog, owl"),
    ({"predicted": "cow", "probabilities": [0.1, 0.2, 0.7]}, "predicted: must be one of these classes"),
    ({"predicted": "", "probabilities": [0.1, 0.2, 0.7]}, "predicted: must be one of these classes"),
    ({"predicted": np.array([1]), "score": 0.9}, "predicted: must be text or a whole number"),
    ({"predicted": Hostile(), "score": 0.9}, "predicted: must be text or a whole number"),
    ({"predicted": "cat", "score": 10**400}, "score: must be a number from 0 to 1"),
    ({"predicted": "cat", "score": Hostile()}, "score: must be a number"),
    ({"probabilities": {0.1, 0.2, 0.7}}, "probabilities: must be one number per class"),
    ({"probabilities": Hostile()}, "probabilities: reading them raises RuntimeError"),
    ({"item_id": "", "predicted": "cat", "score": 0.9}, "item_id: must have at least 1 character"),
]


@pytest.mark.parametrize(("arguments", "problem"), BAD)
def test_a_strict_producer_says_which_argument_is_wrong(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is what is tested
        sent(**arguments)
    assert problem in str(error.value)


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in BAD])
def test_a_producer_counts_a_prediction_that_is_not_valid(arguments: dict[str, Any]) -> None:
    producer = Producer("sorter", kafka=NOBODY, classes=CLASSES)
    given = dict(arguments)
    assert not producer.log(given.pop("item_id", "a"), **given)
    assert (producer.counters.logged, producer.counters.failed) == (1, 1)
    producer.close(timeout=0)


def test_probabilities_by_class_need_the_order_of_the_classes() -> None:
    with pytest.raises(ValueError, match="make the producer with `classes`"):
        sent(classes=None, probabilities={"cat": 0.5, "dog": 0.5})
