"""Label requests in the making: what a labeller is told, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from service.config.assessments import AssessmentSettings
from service.monitoring.pool_sampler import Pooled
from service.monitoring.vendor_routing import VendorAssignment
from service.store.records import Fact, encode_json, encode_packed
from service.store.request_registry import request_id_of
from service.store.requests import Draw, Due, OpenRequest, Renewal


def request_of(
    item: Pooled,
    *,
    model: str,
    classes: Sequence[str],
    assessment: str,
    settings: AssessmentSettings,
    group: str,
    voters: str,
    definition: bytes,
    assignment: VendorAssignment,
    now: float,
) -> Draw:
    """A pooled item turned into a request; it does not tell the prediction, unless configured.

    Args:
        item: drawn from the pool.
        model: whose prediction it is.
        classes: that the labeller chooses from.
        assessment: who asks.
        settings: the assessment's.
        group: that it was drawn for.
        voters: by whose votes, if by any.
        definition: what the grouping that is asked for is by (`service/domain/grouping_fingerprints.py`).
        assignment: which vendor is asked.
        now: seconds since the epoch.
    """
    record = item.record
    deadline = now + settings.lease_seconds
    request_id = request_id_of(model, record.item_id)
    vendor = assignment.vendor(request_id, 1)
    message: dict[str, Any] = {
        "request_id": request_id,
        "model": model,
        "item_id": record.item_id,
        "classes": list(classes),
        "requested_at": _iso(now),
        "deadline": _iso(deadline),
        "attempt": 1,
    }
    if record.payload:
        message["payload"] = msgspec.Raw(record.payload)
    if record.payload_uri:
        message["payload_uri"] = record.payload_uri
    if settings.reveal_prediction:
        message["prediction"] = {"predicted_class": record.predicted_class, "score": record.score}
    if vendor:
        message["vendor"] = vendor
    return Draw(
        partition=item.partition,
        field=item.field,
        item_hash=item.item_hash,
        item_id=record.item_id,
        request_id=request_id,
        fact=encode_packed(
            Fact(
                request_id=request_id,
                item_id=record.item_id,
                grouping=settings.asked_grouping,
                group=group,
                predicted_class=record.predicted_class,
                score=record.score,
                attributes=record.attributes,
                predicted_at=record.time,
                requested_at=now,
                votes=record.votes,
                voters=voters,
                definition=definition,
            )
        ),
        message=encode_json(message),
        open=OpenRequest(
            assessment=assessment,
            group=group,
            attributes=record.attributes,
            predicted_class=record.predicted_class,
            score=record.score,
            attempt=1,
            requested_at=now,
            vendor=vendor,
        ),
        deadline=deadline,
    )


def renewal_of(
    due: Due, settings: AssessmentSettings | None, *, assignment: VendorAssignment, now: float
) -> Renewal:
    """What becomes of a request whose deadline has passed: another attempt, or its end.

    Args:
        due: the request.
        settings: of its assessment; None if that is not configured any more.
        assignment: which vendor is asked.
        now: seconds since the epoch.
    """
    if settings is None or due.open.attempt >= settings.max_attempts:
        return Renewal(due)
    attempt = due.open.attempt + 1
    vendor = assignment.vendor(due.request_id, attempt)
    deadline = now + settings.lease_seconds
    message = msgspec.json.decode(due.message, type=dict[str, msgspec.Raw])
    message |= {
        "requested_at": msgspec.Raw(encode_json(_iso(now))),
        "deadline": msgspec.Raw(encode_json(_iso(deadline))),
        "attempt": msgspec.Raw(encode_json(attempt)),
    }
    message.pop("vendor", None)
    if vendor:
        message["vendor"] = msgspec.Raw(encode_json(vendor))
    item_id = msgspec.json.decode(message["item_id"], type=str)
    return Renewal(due, deadline, encode_json(message), vendor=vendor, item_id=item_id)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
