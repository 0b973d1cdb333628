"""Bodies of the vendor API's requests and responses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from service.domain.messages import ClassName, ItemId, LabelRequest, Name

LONGEST_LEASE_SECONDS = 2_592_000.0


class Body(BaseModel):
    """What a vendor sends; unknown keys are refused, as they may be misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """What a vendor gets."""

    model_config = ConfigDict(frozen=True)


def _text(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError("must be text: RFC 3339 with an offset")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_text, json_schema_input_type=str)]
ClaimId = Annotated[str, Field(min_length=1, max_length=64, description="as received with the claim")]
Annotator = Annotated[
    Name | None,
    Field(
        default=None,
        description="a pseudonym of who answered, not a person's name; needed if several people label items",
    ),
]
AnswerTime = Annotated[Time | None, Field(default=None, description="when it was answered; default: now")]
LeaseSeconds = Annotated[
    float | None,
    Field(
        default=None,
        strict=True,
        gt=0,
        le=LONGEST_LEASE_SECONDS,
        description="how long to hold the requests; default: as configured. The deadline may be sooner",
    ),
]


class ClaimBody(Body):
    """The requests to claim."""

    models: list[Name] | None = Field(
        default=None, min_length=1, max_length=1_000, description="only of these models; default: all"
    )
    most: int = Field(
        default=1,
        strict=True,
        ge=1,
        le=1_000,
        description="maximum number of claims; the configuration may allow fewer",
    )
    lease_seconds: LeaseSeconds
    annotator: Name | None = Field(
        default=None, description="who is to answer: no requests for items that they have labelled before"
    )
    wait_seconds: float = Field(
        default=0.0,
        strict=True,
        ge=0,
        le=600,
        description="how long to wait for a request if there is none; the configuration may allow less",
    )


class RenewBody(Body):
    """The claim whose lease to restart."""

    claim_id: ClaimId
    lease_seconds: LeaseSeconds


class ReleaseBody(Body):
    """The claim to release."""

    claim_id: ClaimId


class AnswerBody(Body):
    """A person's answer."""

    claim_id: ClaimId
    true_class: ClassName = Field(description="one of the request's `classes`")
    annotator: Annotator
    time: AnswerTime


class SkipBody(Body):
    """The item cannot be labelled."""

    claim_id: ClaimId
    annotator: Annotator
    time: AnswerTime


class CorrectionBody(Body):
    """The replacement of an earlier answer."""

    item_id: ItemId
    true_class: ClassName = Field(description="one of the model's classes")
    annotator: Annotator
    time: AnswerTime


class RetractionBody(Body):
    """The answer to retract."""

    item_id: ItemId
    annotator: Annotator
    time: AnswerTime


Labelled = AnswerBody | SkipBody | CorrectionBody | RetractionBody


class ModelOfVendor(Answer):
    """A model that this vendor labels."""

    model: str = Field(description="its name")
    classes: list[str] = Field(description="its label set, in order")
    waiting: int = Field(ge=0, description="requests that can be claimed now")


class ModelsOfVendor(Answer):
    """All models that this vendor labels."""

    models: list[ModelOfVendor]


class Held(Answer):
    """A claimed request."""

    claim_id: str = Field(description="needed to renew, release, answer and skip")
    model: str = Field(description="the request's model")
    request_id: str = Field(description="the request's id")
    state: Literal["claimed", "submitted"] = Field(
        description="`submitted` while its answer is being processed"
    )
    leased_until: AwareDatetime = Field(description="when the claim ends unless it is renewed")
    request: LabelRequest = Field(description="the label request, as published to Kafka")


class Claims(Answer):
    """Claims, new or current."""

    claims: list[Held]


class Renewed(Answer):
    """The renewed claim."""

    state: Literal["claimed"] = "claimed"
    leased_until: AwareDatetime = Field(description="when the claim ends unless it is renewed")


class Released(Answer):
    """Others can claim the request now."""

    state: Literal["released"] = "released"


class Submitted(Answer):
    """Kafka has the label. It counts once Credence has read it, usually within seconds."""

    state: Literal["submitted"] = "submitted"


ImportState = Literal[
    "submitted",
    "unchanged",
    "ignored",
    "not-found",
    "claim-lost",
    "claim-ended",
    "same-annotator",
    "annotator-needed",
    "request-expired",
    "too-many-revisions",
    "unknown-class",
]


class Imported(Answer):
    """The result for one annotated task."""

    task: int | None = Field(description="id of the task in Label Studio, if it was sent")
    request_id: str | None = Field(description="the request's id, if it was sent")
    state: ImportState = Field(
        description="`submitted`: a label was written; `unchanged`: the label was already stored; `ignored`: "
        "it has no annotation, an older one than is stored, or is not from Credence; else why it was refused"
    )


class Import(Answer):
    """The results for annotated tasks, in their order."""

    tasks: list[Imported]


class TaskData(Answer):
    """The data of a request that Label Studio stores, and returns with its annotations."""

    request_id: str
    claim_id: str
    model: str
    item_id: str
    payload: str = Field(description="what the labelling configuration shows: text or a URL")
    prediction: JsonValue = Field(default=None, description="the model's prediction; only if configured")


class Task(Answer):
    """A task to be imported by Label Studio."""

    data: TaskData
