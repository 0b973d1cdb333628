"""Refusals as problem details (RFC 9457), in fixed words that quote nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.serving.web.guard import INTERNAL_ERROR, PROBLEM_URN, problem_response

GONE_STATUS = 499
"""Status of a call whose client has disconnected: nobody sees it, but it is counted."""


class Kind(Enum):
    """Every reason to refuse a call: its word, status and sentence."""

    MALFORMED = ("malformed", 400, "the body is not JSON, or the HTTP request is malformed")
    BAD_IDEMPOTENCY_KEY = (
        "bad-idempotency-key",
        400,
        "send one Idempotency-Key of 1 to 255 printable ASCII characters",
    )
    UNAUTHORIZED = ("unauthorized", 401, "the call needs a valid bearer token")
    NOT_FOUND = ("not-found", 404, "this does not exist for this token, or no longer exists")
    METHOD_NOT_ALLOWED = ("method-not-allowed", 405, "this method is not allowed here; see the Allow header")
    TOO_SLOW = ("too-slow", 408, "the body took too long to arrive")
    CLAIM_LOST = (
        "claim-lost",
        409,
        "the claim no longer holds the request: it was released, or somebody else has claimed it",
    )
    CLAIM_ENDED = ("claim-ended", 409, "the lease of this claim has ended; claim the request again")
    ALREADY_SUBMITTED = (
        "already-submitted",
        409,
        "the request was already answered; it can no longer be renewed or released",
    )
    ANSWERED_DIFFERENTLY = (
        "answered-differently",
        409,
        "this claim was answered differently before; send a correction to replace an answer",
    )
    SAME_ANNOTATOR = (
        "same-annotator",
        409,
        "this annotator has labelled the item before; somebody else has to answer this request",
    )
    NOT_ANSWERED = ("not-answered", 409, "there is no answer to correct or retract")
    TOO_MANY_REVISIONS = (
        "too-many-revisions",
        409,
        "the request has reached its maximum number of revisions",
    )
    REQUEST_EXPIRED = ("request-expired", 409, "the request's last deadline has passed; no label is taken")
    STILL_RUNNING = (
        "still-running",
        409,
        "a call with this Idempotency-Key is still running; repeat it later",
    )
    TOO_LARGE = ("too-large", 413, "the body is too long")
    UNSUPPORTED_MEDIA_TYPE = (
        "unsupported-media-type",
        415,
        "the body must be application/json without content encoding",
    )
    INVALID = ("invalid", 422, "the call does not match the API description; see `errors`")
    UNKNOWN_CLASS = ("unknown-class", 422, "true_class is not one of the request's classes")
    ANNOTATOR_NEEDED = (
        "annotator-needed",
        422,
        "several people label items of this model; send the `annotator`",
    )
    TOO_MANY_ENTRIES = ("too-many-entries", 422, "the import has too many tasks; send it in parts")
    KEY_REUSED = ("idempotency-key-reused", 422, "this Idempotency-Key was used for another call")
    TOO_MANY_CALLS = ("too-many-calls", 429, "the vendor of this token calls too often")
    TOO_MANY_LOGINS = ("too-many-logins", 429, "too many calls without a valid token came from this address")
    TOO_MANY_WAITS = ("too-many-waits", 429, "this vendor has too many waiting calls")
    TOO_MANY_IMPORTS = (
        "too-many-imports",
        429,
        "another import of this vendor is running; send the next one when it has ended",
    )
    INTERNAL = INTERNAL_ERROR
    UNAVAILABLE = ("unavailable", 503, "temporarily unavailable; it is safe to repeat the call")

    def __init__(self, word: str, status: int, detail: str) -> None:
        self.word = word
        self.status = status
        self.detail = detail


class Fault(BaseModel):
    """One thing that is wrong with a call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str = Field(description="where: `body.lease_seconds`, `path.request_id`, …")
    problem: str = Field(description="what is wrong there")


class Problem(BaseModel):
    """Why a call was refused, after RFC 9457."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal[tuple(PROBLEM_URN + kind.word for kind in Kind)]  # type: ignore[valid-type]  # made from the table
    title: str = Field(description="the last part of `type` in words")
    status: int = Field(description="the HTTP status")
    detail: str = Field(description="one sentence, always the same for this type")
    errors: list[Fault] | None = Field(default=None, description="with `invalid`: what is wrong, and where")


class Refused(Exception):  # noqa: N818 - says what happened
    """A call is refused for a reason.

    `retry_seconds` is when to try again, and `errors` what is wrong with the call.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        retry_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Fault] = (),
    ) -> None:
        super().__init__(kind.word)
        self.kind = kind
        self.headers = dict(headers or {})
        if retry_seconds is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_seconds)))
        self._errors = errors

    def response(self) -> Response:
        """The answer to the call."""
        kind = self.kind
        errors = {"errors": [fault.model_dump() for fault in self._errors]} if self._errors else {}
        return problem_response(kind.word, kind.status, kind.detail, headers=self.headers, **errors)


def unavailable() -> Refused:
    """The refusal while Redis or Kafka cannot be reached."""
    return Refused(Kind.UNAVAILABLE, retry_seconds=2.0)
