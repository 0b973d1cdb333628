"""What is wrong with the body of a call is said in our words, as of a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from library_sentences import SENTENCES
from office import Caller

from service.serving.vendor_api.label_studio import TasksBody
from service.serving.vendor_api.schemas import (
    AnswerBody,
    Body,
    ClaimBody,
    CorrectionBody,
    ReleaseBody,
    RenewBody,
    RetractionBody,
    SkipBody,
)

REQUEST = "/models/m/requests/r"
BODIES: dict[str, type[Body]] = {
    "/claims": ClaimBody,
    "/models/m/label-studio/tasks": TasksBody,
    f"{REQUEST}/answer": AnswerBody,
    f"{REQUEST}/skip": SkipBody,
    f"{REQUEST}/renew": RenewBody,
    f"{REQUEST}/release": ReleaseBody,
    f"{REQUEST}/correction": CorrectionBody,
    f"{REQUEST}/retraction": RetractionBody,
}
WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 5, 1.5, 1e300, 10**30, "", "no", "z" * 3_000, "2026-01-31", "2026-01-31T12:00:00"),
    *("\ud800", [], [None], [5], [""], ["x"] * 2_000, {}, {"a": 5}),
)


def faults(caller: Caller, path: str, body: Any) -> dict[str, str]:
    """What is wrong with a call, by its place; nothing if it is accepted, or refused for its content."""
    answer = caller.post(path, body)
    assert answer.status < 500
    errors = answer.body.get("errors", ()) if isinstance(answer.body, dict) else ()
    return {each["at"]: each["problem"] for each in errors}


@pytest.mark.parametrize("path", BODIES)
def test_no_sentence_of_the_library_is_sent_whatever_is_wrong(acme: Caller, path: str) -> None:
    said = [
        problem
        for name in (*BODIES[path].model_fields, "unknown")
        for value in WRONG
        for problem in faults(acme, path, {name: value}).values()
    ]
    said += [one for value in WRONG for one in faults(acme, path, value).values()]
    assert said
    assert [one for one in said if SENTENCES.search(one) or "YAML" in one] == []


def test_a_mistake_is_named_with_what_is_expected(acme: Caller) -> None:
    assert faults(acme, "/claims", {"most": 0, "lease": 5, "models": [7], "wait_seconds": "9"}) == {
        "body.most": "must be at least 1, but is 0",
        "body.lease": "unknown key; remove it, or correct its name",
        "body.models.0": "must be text, but is a number",
        "body.wait_seconds": "must be a number, but is text",
    }
    assert faults(acme, f"{REQUEST}/answer", {"claim_id": None, "time": "noon"}) == {
        "body.claim_id": "must be text, but is null",
        "body.true_class": "required, but missing; add it",
        "body.time": "must be a time as RFC 3339 with an offset, such as 2026-01-31T12:00:00Z",
    }
    assert faults(acme, "/claims", []) == {"body": "must be an object, but is a list"}
