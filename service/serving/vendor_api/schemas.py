"""What vendors send and get: the bodies of the vendor API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from service.domain.messages import ClassName, ItemId, LabelRequest, Name

LONGEST_LEASE_SECONDS = 2_592_000.0


class Body(BaseModel):
    """What a vendor sends; keys that are not known are refused, as they may be misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """What a vendor gets."""

    model_config = ConfigDict(frozen=True)


def _text(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError("must be text: RFC 3339 with an offset")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_text, json_schema_input_type=str)]
ClaimId = Annotated[str, Field(min_length=1, max_length=64, description="as it was given with the claim")]
Annotator = Annotated[
    Name | None,
    Field(default=None, description="who answered; never used in statistics, not a person's name"),
]
Given = Annotated[Time | None, Field(default=None, description="when it was answered; now, if absent")]
LeaseSeconds = Annotated[
    float | None,
    Field(
        default=None,
        strict=True,
        gt=0,
        le=LONGEST_LEASE_SECONDS,
        description="how long to hold the requests; as configured, if absent. The deadline may be sooner",
    ),
]


class ClaimBody(Body):
    """Which requests to claim, and how many."""

    models: list[Name] | None = Field(
        default=None, min_length=1, max_length=1_000, description="of these models; of all, if absent"
    )
    most: int = Field(
        default=1, strict=True, ge=1, le=1_000, description="claims wanted; the configuration may allow fewer"
    )
    lease_seconds: LeaseSeconds
    wait_seconds: float = Field(
        default=0.0,
        strict=True,
        ge=0,
        le=600,
        description="while there is none, wait so long for one; the configuration may allow less",
    )


class RenewBody(Body):
    """Whose lease is to begin anew."""

    claim_id: ClaimId
    lease_seconds: LeaseSeconds


class ReleaseBody(Body):
    """Which claim is given back."""

    claim_id: ClaimId


class AnswerBody(Body):
    """What a person sees in the item."""

    claim_id: ClaimId
    true_class: ClassName = Field(description="one of the request's `classes`")
    annotator: Annotator
    time: Given


class SkipBody(Body):
    """That it cannot be told."""

    claim_id: ClaimId
    annotator: Annotator
    time: Given


class CorrectionBody(Body):
    """What replaces an earlier answer."""

    item_id: ItemId
    true_class: ClassName = Field(description="one of the model's classes")
    annotator: Annotator
    time: Given


class RetractionBody(Body):
    """Which answer is taken back."""

    item_id: ItemId
    annotator: Annotator
    time: Given


class ModelOfVendor(Answer):
    """A model whose requests may go to this vendor."""

    model: str = Field(description="its name")
    classes: list[str] = Field(description="its label set, in order")
    waiting: int = Field(ge=0, description="requests that can be claimed now")


class ModelsOfVendor(Answer):
    """All models whose requests may go to this vendor."""

    models: list[ModelOfVendor]


class Held(Answer):
    """A claimed request."""

    claim_id: str = Field(description="the proof of holding it: needed to renew, release, answer and skip")
    model: str = Field(description="the request's model")
    request_id: str = Field(description="the request's id")
    state: Literal["claimed", "submitted"] = Field(description="`submitted` while its answer is on its way")
    leased_until: AwareDatetime = Field(description="when the claim ends, if it is not renewed")
    request: LabelRequest = Field(description="what is asked, as it would come over Kafka")


class Claims(Answer):
    """Claims: new ones, or those that are held."""

    claims: list[Held]


class Renewed(Answer):
    """The claim goes on."""

    state: Literal["claimed"] = "claimed"
    leased_until: AwareDatetime = Field(description="when the claim ends, if it is not renewed")


class Released(Answer):
    """The request can be claimed by others."""

    state: Literal["released"] = "released"


class Submitted(Answer):
    """Kafka has the label; it counts as soon as it is read, which takes a moment."""

    state: Literal["submitted"] = "submitted"


ImportState = Literal[
    "submitted",
    "unchanged",
    "ignored",
    "not-found",
    "claim-lost",
    "claim-ended",
    "request-expired",
    "too-many-revisions",
    "unknown-class",
]


class Imported(Answer):
    """What became of one annotated task."""

    task: int | None = Field(description="id of the task in Label Studio, if it was told")
    request_id: str | None = Field(description="the request's id, if it was told")
    state: ImportState = Field(
        description="`submitted`: a label was written; `unchanged`: it said what was known; `ignored`: it "
        "has no annotation, or one older than what was taken, or is none of ours; else why it was refused"
    )


class Import(Answer):
    """What became of annotated tasks, in their order."""

    tasks: list[Imported]


class TaskData(Answer):
    """What Label Studio keeps of a request, and gives back with its annotations."""

    request_id: str
    claim_id: str
    model: str
    item_id: str
    payload: str = Field(description="what the labelling configuration shows: text, or an address")
    prediction: JsonValue = Field(
        default=None, description="what the model says; only where that is configured"
    )


class Task(Answer):
    """A task to be imported by Label Studio."""

    data: TaskData
