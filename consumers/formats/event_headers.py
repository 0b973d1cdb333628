"""Headers of records: what those of CloudEvents say of the value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from service.domain.errors import BadMessage
from service.domain.messages import CLOUDEVENTS_VERSION

Headers = Sequence[tuple[str, bytes | None]]

EVENTS = b"application/cloudevents"
"""What the content types of events in structured mode, and of batches of them, begin with."""


def is_event(headers: Headers) -> bool:
    """Whether headers say that the value is a CloudEvent in structured mode."""
    types = (content for name, content in headers if name == "content-type" and content)
    return any(content.strip().lower().startswith(EVENTS) for content in types)


def check_event(headers: Headers, expected_type: str) -> None:
    """Check CloudEvents headers, if a record has any.

    Raises:
        BadMessage: they are of another event type, or of another version of CloudEvents, or say that the
            value is an event, and not a message.
    """
    if is_event(headers):
        # Its attributes may have the names of a message's fields.
        raise BadMessage("unsupported_event", "content-type: the value is an event, not a message")
    for name, content in headers:
        if name == "ce_specversion" and content != CLOUDEVENTS_VERSION.encode():
            raise BadMessage("unsupported_event", f"ce_specversion must be {CLOUDEVENTS_VERSION}")
        if name == "ce_type" and content != expected_type.encode():
            raise BadMessage("unsupported_event", f"ce_type must be {expected_type} on this topic")


def fits_event(headers: Headers, expected_type: str) -> bool:
    """Whether `check_event` accepts the headers."""
    try:
        check_event(headers, expected_type)
    except BadMessage:
        return False
    return True


def event_time(headers: Headers) -> float | None:
    """The time in CloudEvents headers, in seconds since the epoch; None if there is no valid one."""
    for name, content in headers:
        if name == "ce_time" and content is not None:
            try:
                claimed = datetime.fromisoformat(content.decode("ascii"))
                return None if claimed.tzinfo is None else claimed.timestamp()
            except (ValueError, OverflowError):
                return None
    return None
