"""What one consumer has refused: counts by reason with one example each, and rate-limited log lines.

Neither holds message content: a message is named by its place, and by the field that is wrong.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from consumers.dead_letters import Rejected
from service.store.consumer_health import RefusedMessages

log = logging.getLogger(__name__)

LOG_SECONDS = 60.0
"""Between two log lines about one reason."""

_BIN_SECONDS = 300.0
_BINS = 12
"""An hour."""

_LONGEST_DETAIL = 200
_FIELD_IN_DETAIL = re.compile(r"`(?:\$(?:\[\d+\])?\.)?([a-z_]+)|^([a-z_]+)(?:: | is )")
"""Details name a field in backticks, as a path or alone, or begin with it."""

_FIELD_OF_REASON = {
    "unknown_model": "model",
    "unknown_request": "request_id",
    "item_mismatch": "item_id",
    "invalid_score": "score",
    "invalid_probabilities": "probabilities",
    "payload_too_large": "payload",
    "unsupported_event": "ce_type",
}
"""Of the reasons that are about one field, whatever the detail says."""

_TYPES = frozenset({"str", "int", "float", "bool", "object", "array", "null", "datetime"})
"""Also in backticks in details."""


@dataclass
class _Reason:
    """Messages refused for one reason.

    Attributes:
        first: the first of them.
        logged_at: when a log line was last written about them, seconds since the epoch.
        unlogged: how many were refused since then.
    """

    first: RefusedMessages
    last_at: float
    logged_at: float
    count: int = 0
    unlogged: int = 0


@dataclass
class _Bin:
    """Messages of five minutes."""

    number: int
    messages: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class Refusals:
    """Counts and logs what is refused; times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._reasons: dict[str, _Reason] = {}
        self._bins: deque[_Bin] = deque(maxlen=_BINS)

    def note(self, rejected: Sequence[Rejected], *, messages: int, now: float) -> None:
        """Count the messages of one batch, of which some are refused; log each new reason at once."""
        current = self._bin(now)
        current.messages += messages
        for one in rejected:
            reason = one.error.reason
            current.refused[reason] += 1
            known = self._reasons.get(reason)
            if known is None:
                known = self._reasons[reason] = _Reason(_example(one, now), now, logged_at=now)
                _log(known, 1)
            else:
                known.unlogged += 1
            known.count, known.last_at = known.count + 1, now
        if rejected:
            self.log_due(now)

    def log_due(self, now: float) -> None:
        """Log the reasons with refused messages that are not logged, at most one line a minute for each."""
        for known in self._reasons.values():
            if known.unlogged and not 0 <= now - known.logged_at < LOG_SECONDS:
                _log(known, known.unlogged)
                known.unlogged, known.logged_at = 0, now

    def by_reason(self, now: float) -> tuple[RefusedMessages, ...]:
        """What was refused since the start, the most frequent reason first."""
        recent: Counter[str] = Counter()
        for each in self._last_hour(now):
            recent.update(each.refused)
        found = (
            RefusedMessages(
                reason=reason,
                count=known.count,
                recent=recent[reason],
                last_at=known.last_at,
                topic=known.first.topic,
                partition=known.first.partition,
                offset=known.first.offset,
                index=known.first.index,
                field=known.first.field,
                detail=known.first.detail,
            )
            for reason, known in self._reasons.items()
        )
        return tuple(sorted(found, key=lambda one: (-one.count, one.reason)))

    def messages(self, now: float) -> int:
        """Messages of the last hour, refused ones included."""
        return sum(each.messages for each in self._last_hour(now))

    def _bin(self, now: float) -> _Bin:
        number = int(now // _BIN_SECONDS)
        if not self._bins or self._bins[-1].number != number:
            self._bins.append(_Bin(number))
        return self._bins[-1]

    def _last_hour(self, now: float) -> list[_Bin]:
        newest = int(now // _BIN_SECONDS)
        return [each for each in self._bins if newest - _BINS < each.number <= newest]


def _example(rejected: Rejected, now: float) -> RefusedMessages:
    place, error = rejected.place, rejected.error
    return RefusedMessages(
        reason=error.reason,
        count=1,
        recent=1,
        last_at=now,
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        index=place.index,
        field=field_of(error.reason, error.detail),
        detail=error.detail[:_LONGEST_DETAIL],
    )


def field_of(reason: str, detail: str) -> str:
    """Name of the field that a refusal is about; empty if it is about none, or not one alone."""
    names = (in_backticks or first for in_backticks, first in _FIELD_IN_DETAIL.findall(detail))
    return next((name for name in names if name not in _TYPES), _FIELD_OF_REASON.get(reason, ""))


def _log(known: _Reason, count: int) -> None:
    first = known.first
    log.warning(
        "messages are refused",
        extra={
            "reason": first.reason,
            "refused": count,
            "detail": first.detail,
            "field": first.field,
            "topic": first.topic,
            "partition": first.partition,
            "offset": first.offset,
            "index": first.index,
        },
    )
