"""States of the pipeline, healthy but for what is given."""

from __future__ import annotations

from typing import Any

from service.monitoring.pipeline import PipelineState
from service.store.consumer_health import ConsumerHealth
from service.store.lease import Leader
from service.store.recent_reports import Intake, RefusedMessages

NOW = 1_800_000_000.0
REFUSED = RefusedMessages(
    reason="invalid_field",
    count=500,
    last_at=NOW - 5,
    topic="predictions",
    partition=2,
    offset=17,
    index=None,
    field="predicted_class",
    detail="predicted_class: expected a string, got an integer",
)


def consumer(role: str, member: str = "a:8401", **changes: Any) -> ConsumerHealth:
    plain: dict[str, Any] = {
        "state": "running",
        "state_since": NOW - 1_000,
        "written_at": NOW - 3,
        "started_at": NOW - 1_000,
        "partitions": (0, 1),
        "assigned_at": NOW - 900,
        "partition_count": 2,
    }
    return ConsumerHealth(role=role, member=member, **plain | changes)


def intake(role: str, messages: int, *refused: RefusedMessages, process: str = "a1") -> Intake:
    """Of the last five minutes."""
    return Intake(role, process, messages, refused, NOW - 300)


def state(*consumers: ConsumerHealth, **changes: Any) -> PipelineState:
    """A healthy pipeline but for what is given; a role of which nothing is given has one consumer."""
    given = {one.role for one in consumers}
    others = [consumer(role) for role in ("predictions", "labels") if role not in given]
    plain: dict[str, Any] = {
        "read_at": NOW,
        "leader": Leader("a:8401", NOW - 7_200),
        "reset": None,
        "estimates_at": NOW - 4,
    }
    return PipelineState(consumers=[*consumers, *others], **plain | changes)
