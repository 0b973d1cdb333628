"""The wire messages: prediction, label request, label.

These models are the contract: JSON Schemas, the AsyncAPI document and the examples
in `docs/contract/` are made from them, and every decoder is tested against them.
A record's value is the JSON of one message (predictions: also an array of them), its
key is the item id, and its headers follow CloudEvents 1.0 binary mode.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, model_validator

SCORE_TOLERANCE = 1e-4
"""How far a score or probability may lie outside [0, 1] and still be clipped, not rejected."""

PROBABILITY_SUM_TOLERANCE = 1e-2
"""How far class probabilities may sum from 1: float16 softmax outputs stay within it."""

LONGEST_NAME, LONGEST_ITEM_ID, LONGEST_REQUEST_ID, LONGEST_CLASS, LONGEST_URI = 128, 256, 64, 256, 2048
"""Characters of names of models, attributes and voters, of ids, classes and addresses."""

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of the times that messages can have, those of the years 1 to 9999, in seconds since the epoch."""

MOST_ATTRIBUTES = 64
"""Attributes that one prediction may carry."""

MOST_VOTES = 64
"""Other classifiers, such as members of an ensemble, whose votes one prediction may carry."""

PREDICTION_TYPE = "dev.credence.prediction.v1"
LABEL_REQUEST_TYPE = "dev.credence.label-request.v1"
LABEL_TYPE = "dev.credence.label.v1"
CLOUDEVENTS_VERSION = "1.0"

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
ItemId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_ITEM_ID,
        description="the producer's id of the item: one id for one thing that a person can label. Nobody "
        "labels an item twice; its labels count for every prediction of it that is drawn",
    ),
]
RequestId = Annotated[
    str, Field(min_length=1, max_length=LONGEST_REQUEST_ID, description="id of the label request")
]
ClassName = Annotated[str, Field(min_length=1, max_length=LONGEST_CLASS)]
Uri = Annotated[str, Field(min_length=1, max_length=LONGEST_URI)]
Score = Annotated[
    float,
    Field(
        ge=-SCORE_TOLERANCE,
        le=1 + SCORE_TOLERANCE,
        allow_inf_nan=False,
        description="probability in [0, 1]; up to 0.0001 outside is clipped",
    ),
]
InclusionProbability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class Message(BaseModel):
    """Base of the wire messages: immutable, and tolerant of keys of a newer producer."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Prediction(Message):
    """One output of one model for one item.

    Give `predicted_class` and `score`, or `probabilities` in the order of the model's
    configured classes (then the predicted class defaults to the most probable one and
    the score to its probability). The predicted class need not be the most probable.
    """

    model: Name = Field(description="name of the model in the configuration")
    item_id: ItemId
    predicted_class: ClassName | None = Field(default=None, description="a class of the model's label set")
    score: Score | None = Field(default=None, description="the model's probability of the predicted class")
    probabilities: list[Score] | None = Field(
        default=None, min_length=2, description="one per configured class, in that order; they sum to 1"
    )
    attributes: dict[Name, str] = Field(
        default_factory=dict,
        max_length=MOST_ATTRIBUTES,
        description="what groups are made from, such as region or device",
    )
    time: AwareDatetime | None = Field(
        default=None,
        description="when it was predicted; the record's time if absent. A time too far from the record's "
        "counts as of the bound (`bounds.lateness_hours`)",
    )
    payload: JsonValue = Field(default=None, description="what the labeller needs to see, inline")
    payload_uri: Uri | None = Field(default=None, description="where the labeller finds it")
    votes: Annotated[dict[Name, ClassName], Field(max_length=MOST_VOTES)] | None = Field(
        default=None, description="the class that each member of an ensemble, or a challenger, predicts"
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.probabilities is None and (self.predicted_class is None or self.score is None):
            raise ValueError("give predicted_class and score, or probabilities")
        if self.probabilities is not None:
            total = sum(min(max(p, 0.0), 1.0) for p in self.probabilities)
            if abs(total - 1.0) > PROBABILITY_SUM_TOLERANCE:
                raise ValueError("probabilities must sum to 1")
        if self.payload is not None and self.payload_uri is not None:
            raise ValueError("give payload or payload_uri, not both")
        return self


class RevealedPrediction(Message):
    """The model's output, shown to labellers only where an assessment is configured to reveal it."""

    predicted_class: ClassName = Field(description="a class of the model's label set")
    score: Score


class LabelRequest(Message):
    """One item sent to be labelled. It does not reveal the model's prediction, unless configured."""

    request_id: RequestId
    model: Name = Field(description="name of the model in the configuration")
    item_id: ItemId
    classes: list[ClassName] = Field(description="the answers to choose from, always in the same order")
    payload: JsonValue = Field(default=None, description="what the labeller needs to see, inline")
    payload_uri: Uri | None = Field(default=None, description="where the labeller finds it")
    requested_at: AwareDatetime = Field(description="when this attempt was issued")
    deadline: AwareDatetime = Field(description="a later label may be refused")
    attempt: int = Field(ge=1, description="counts from 1; a request that expires may be issued again")
    opinion: int = Field(
        default=1,
        ge=1,
        description="whose label this is to be: from 2 on, of somebody who has not labelled the item yet",
    )
    prediction: RevealedPrediction | None = Field(default=None, description="absent unless configured")
    vendor: Name | None = Field(
        default=None,
        description="who is asked, and may alone answer this attempt; absent unless vendors are configured",
    )


LabelKind = Literal["answer", "skip", "correction", "retraction"]


class LabelledPrediction(Message):
    """The prediction that a label without a request is about, where Credence may not have it."""

    predicted_class: ClassName = Field(description="a class of the model's label set")
    score: Score
    attributes: dict[Name, str] = Field(
        default_factory=dict, max_length=MOST_ATTRIBUTES, description="as in the prediction"
    )
    time: AwareDatetime = Field(description="when it was predicted")


class Label(Message):
    """What a person answered to a label request, or the true class of an item that nobody requested.

    `answer` gives the true class; `skip` says that it cannot be determined; `correction` replaces an
    earlier answer; `retraction` takes it back. A label without a `request_id` is about the item; the model
    must be configured with `unrequested_labels`. Of several such labels of an item the one with the latest
    `time` counts.
    """

    request_id: RequestId | None = Field(
        default=None,
        description="id of the label request; absent from a label that nobody requested, which cannot be a "
        "skip",
    )
    model: Name = Field(description="name of the model in the configuration")
    item_id: ItemId
    kind: LabelKind = Field(default="answer", description="what the label says of its request or item")
    true_class: ClassName | None = Field(
        default=None, description="required for an answer and a correction; absent otherwise"
    )
    annotator: Name | None = Field(
        default=None, description="who answered; needed if several people label items"
    )
    time: AwareDatetime | None = Field(
        default=None, description="when it was answered; the record's time if absent; needed in signed labels"
    )
    probability: InclusionProbability | None = Field(
        default=None,
        description="without a request: the probability that this item is in the sample of labelled items; "
        "needed with `items: sampled`",
    )
    prediction: LabelledPrediction | None = Field(
        default=None,
        description="without a request: the prediction, if the predictions topic may not have it",
    )

    @model_validator(mode="after")
    def _class_where_needed(self) -> Self:
        if (self.true_class is None) == (self.kind in ("answer", "correction")):
            raise ValueError("true_class is required for answer and correction, and absent otherwise")
        return self

    @model_validator(mode="after")
    def _fits_request(self) -> Self:
        if self.request_id is None:
            if self.kind == "skip":
                raise ValueError("a skip needs a request_id")
        elif self.probability is not None or self.prediction is not None:
            raise ValueError("probability and prediction are of labels without a request_id")
        return self


EXAMPLES: dict[str, dict[str, Any]] = {
    "Prediction": {
        "model": "digits",
        "item_id": "img-000017",
        "probabilities": [0.01, 0.9, 0.01, 0.01, 0.01, 0.01, 0.02, 0.01, 0.01, 0.01],
        "attributes": {"camera": "dock"},
        "time": "2026-01-31T12:00:00Z",
        "payload_uri": "https://images.example/17.png",
    },
    "LabelRequest": {
        "request_id": "5f1c3c0e9a7b4d21",
        "model": "digits",
        "item_id": "img-000017",
        "classes": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
        "payload_uri": "https://images.example/17.png",
        "requested_at": "2026-01-31T12:00:05Z",
        "deadline": "2026-01-31T13:00:05Z",
        "attempt": 1,
    },
    "Label": {
        "request_id": "5f1c3c0e9a7b4d21",
        "model": "digits",
        "item_id": "img-000017",
        "kind": "answer",
        "true_class": "7",
        "annotator": "ana",
        "time": "2026-01-31T12:04:31Z",
    },
}
"""One valid example of each message, shown in the documentation and tested."""

MESSAGES: dict[str, type[Message]] = {"Prediction": Prediction, "LabelRequest": LabelRequest, "Label": Label}


def cloudevents_headers(
    *, event_type: str, event_id: str, source: str, time: datetime
) -> list[tuple[str, bytes]]:
    """Kafka headers of one produced message, after the CloudEvents 1.0 Kafka binding in binary mode.

    `event_type` is one of the `*_TYPE` constants; `event_id` is unique together with `source`, a URI
    reference of the emitter.
    """
    return [
        ("ce_specversion", CLOUDEVENTS_VERSION.encode()),
        ("ce_id", event_id.encode()),
        ("ce_source", source.encode()),
        ("ce_type", event_type.encode()),
        ("ce_time", time.isoformat().encode()),
        ("content-type", b"application/json"),
    ]
