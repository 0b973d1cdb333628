"""Where bad messages go, and when there are too many of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.errors import BadMessage, DeadLetterFlood


@dataclass(frozen=True)
class Rejected:
    """One message that cannot be used, and where it stands.

    Attributes:
        partition: of the source topic.
        offset: of the source record.
        index: position in an array of predictions; None for a single message.
        key: key of the source record.
        value: the message's bytes.
        error: why it is refused.
    """

    partition: int
    offset: int
    index: int | None
    key: bytes | None
    value: bytes
    error: BadMessage


class DeadLetterSink(Protocol):
    """Takes rejected messages and keeps them."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once all are kept.

        Raises:
            Unavailable: they cannot be kept now.
        """


class FloodGate:
    """Tells a flood of bad messages from a few.

    It looks at the last `window` messages, whatever their offsets: a topic with gaps (compaction,
    transactions) counts no differently.
    """

    def __init__(self, *, ratio: float, window: int) -> None:
        self._ratio = ratio
        self._window = window
        self._batches: deque[tuple[int, int]] = deque()
        self._messages = 0
        self._bad = 0

    def admit(self, *, messages: int, bad: int) -> None:
        """Count one batch; call it before anything of the batch is discarded.

        Raises:
            DeadLetterFlood: more than `ratio` of the last `window` messages are bad. The batch is not
                counted then, so that asking again gives the same answer.
        """
        total, total_bad = self._messages + messages, self._bad + bad
        if bad and total >= self._window and total_bad > self._ratio * total:
            raise DeadLetterFlood(
                f"{total_bad} of the last {total} messages cannot be used: consuming stops, and nothing more "
                "is discarded; mend the producer or the configuration, then restart"
            )
        self._batches.append((messages, bad))
        self._messages, self._bad = total, total_bad
        while self._messages - self._batches[0][0] >= self._window:
            old_messages, old_bad = self._batches.popleft()
            self._messages -= old_messages
            self._bad -= old_bad
