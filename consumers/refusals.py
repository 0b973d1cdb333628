"""What one consumer has refused: counts by reason with one example each, and rate-limited log lines.

Neither holds message content: a message is named by its place, and by the field that is wrong.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from consumers.dead_letters import Rejected
from service.store.recent_reports import Intake, RefusedMessages

log = logging.getLogger(__name__)

LOG_SECONDS = 60.0
"""Between two log lines about one reason."""

_BIN_SECONDS = 300.0
_MOST_BINS = 13
"""Kept while Redis takes no reports: at least an hour."""

_LONGEST_DETAIL = 200
_FIELD_IN_DETAIL = re.compile(r"`([a-z_]+)|^([a-z_]+)(?:[.\[][^ ]*)?(?:: | is )")
"""Details name a field in backticks, or begin with its path."""

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


@dataclass
class _Reason:
    """Messages refused for one reason.

    Attributes:
        first: the first of them.
        last_at: when the last one was refused, seconds since the epoch.
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
    """Messages of five minutes, which began at `at`."""

    at: float
    messages: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    is_reported: bool = False


class Refusals:
    """Counts and logs what is refused; times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._reasons: dict[str, _Reason] = {}
        self._bins: deque[_Bin] = deque(maxlen=_MOST_BINS)
        self._process = secrets.token_hex(4)

    def note(self, rejected: Sequence[Rejected], *, messages: int, now: float) -> None:
        """Count the messages of one batch, of which some are refused; log each new reason at once."""
        current = self._bin(now)
        current.messages, current.is_reported = current.messages + messages, False
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

    def by_reason(self) -> tuple[RefusedMessages, ...]:
        """What was refused since the start, the most frequent reason first."""
        return self._with_examples({reason: known.count for reason, known in self._reasons.items()})

    def unreported(self, role: str) -> list[Intake]:
        """What was processed in every five minutes of which not all is reported."""
        return [
            Intake(role, self._process, each.messages, self._with_examples(each.refused), each.at)
            for each in self._bins
            if not each.is_reported
        ]

    def reported(self) -> None:
        """Note that everything so far is reported."""
        for each in self._bins:
            each.is_reported = True

    def _with_examples(self, counts: Mapping[str, int]) -> tuple[RefusedMessages, ...]:
        found = (
            replace(self._reasons[reason].first, count=count, last_at=self._reasons[reason].last_at)
            for reason, count in counts.items()
        )
        return tuple(sorted(found, key=lambda one: (-one.count, one.reason)))

    def _bin(self, now: float) -> _Bin:
        at = now - now % _BIN_SECONDS
        # A clock that is set back comes to the same five minutes again, whose report has the same name.
        for each in reversed(self._bins):
            if each.at == at:
                return each
        self._bins.append(_Bin(at))
        return self._bins[-1]


def _example(rejected: Rejected, now: float) -> RefusedMessages:
    place, error = rejected.place, rejected.error
    return RefusedMessages(
        reason=error.reason,
        count=1,
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
    found = _FIELD_IN_DETAIL.search(detail)
    return _FIELD_OF_REASON.get(reason, "") if found is None else found[1] or found[2]


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
