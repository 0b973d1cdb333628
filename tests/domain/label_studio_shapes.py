"""What Label Studio 1.23 exports, and what its webhooks send, as it was recorded."""

from __future__ import annotations

import json
from typing import Any

DATA = {"request_id": "r0", "claim_id": "c1", "model": "m", "item_id": "i1", "payload": "hello"}
PROJECT = {"id": 2, "title": "ttt", "created_at": "2026-11-21T23:34:19.000000Z"}


def annotation(number: int = 5, choice: str | None = "cat", **fields: Any) -> dict[str, Any]:
    """An annotation as an export and a webhook tell it."""
    result = [
        {"from_name": "true_class", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}
    ]
    return {
        "id": number,
        "result": [] if choice is None else result,
        "was_cancelled": choice is None,
        "ground_truth": False,
        "created_at": "2026-11-21T23:34:20.400062Z",
        "updated_at": "2026-11-21T23:34:20.400094Z",
        "draft_created_at": None,
        "lead_time": None,
        "prediction": {},
        "result_count": 1,
        "unique_id": "8da6da79-8397-4d60-853d-1a0c77c54b27",
        "last_action": None,
        "task": 4,
        "project": 2,
        "completed_by": 1,
        "parent_prediction": None,
    } | fields


def task(*annotations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A task of an export."""
    return {
        "id": 4,
        "annotations": list(annotations),
        "drafts": [],
        "predictions": [],
        "data": DATA,
        "meta": {},
        "created_at": "2026-11-21T23:34:19.441253Z",
        "inner_id": 1,
        "total_annotations": len(annotations),
        "project": 2,
    } | fields


def minimal(**fields: Any) -> dict[str, Any]:
    """An annotation of the minimal export."""
    return {
        **DATA,
        "id": 4,
        "true_class": "cat",
        "annotator": 1,
        "annotation_id": 3,
        "created_at": "2026-11-21T23:33:36.712557Z",
        "updated_at": "2026-11-21T23:33:36.712590Z",
        "lead_time": None,
    } | fields


def hook_body(action: str, **fields: Any) -> bytes:
    """What a webhook sends."""
    return json.dumps({"action": action, "project": PROJECT, **fields}).encode()
