"""Where bad messages go, and when there are too many of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from service.domain.errors import BadMessage, DeadLetterFlood


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
        timestamp_ms: of the source record, since the epoch; None where it is not known.
        headers: of the source record. They may say when the message's event was, so it means
            something else without them.
    """

    partition: int
    offset: int
    index: int | None
    key: bytes | None
    value: bytes
    error: BadMessage
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class DeadLetterSink(Protocol):
    """Takes rejected messages and keeps them."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once all are kept.

        Raises:
            Unavailable: they cannot be kept now; give the same ones again later.
        """


class FloodGate:
    """Tells a flood of bad messages from a few.

    It looks at the last `window` messages, whatever their offsets: a topic with gaps (compaction,
    transactions) counts no differently. It is a flood as soon as more than `ratio` of a whole window is bad,
    though the window may not be full yet: good messages that are still to come could not mend that.

    A batch counts as a whole. One that is larger than the window is judged by itself and what is left
    of the window before it, so bad messages at its end are diluted by good ones at its beginning.
    """

    def __init__(self, *, ratio: float, window: int) -> None:
        self._ratio = ratio
        self._window = window
        self._batches: deque[tuple[int, int]] = deque()
        self._messages = 0
        self._bad = 0

    def check(self, *, messages: int, bad: int) -> None:
        """Tell whether a batch would be admitted, without counting it.

        Raises:
            DeadLetterFlood: it would not.
        """
        total, total_bad = self._messages + messages, self._bad + bad
        if bad and total_bad > self._ratio * max(total, self._window):
            raise DeadLetterFlood(
                f"{total_bad} of the last {total} messages cannot be used: consuming stops, and nothing more "
                "is discarded; mend the producer or the configuration, then restart"
            )

    def admit(self, *, messages: int, bad: int) -> None:
        """Count one batch; call it before anything of the batch is discarded.

        Raises:
            DeadLetterFlood: with it, more than `ratio` of the window is bad. The batch is not counted
                then, so that asking again gives the same answer.
        """
        self.check(messages=messages, bad=bad)
        if not messages:
            return
        self._batches.append((messages, bad))
        self._messages += messages
        self._bad += bad
        while self._messages - self._batches[0][0] >= self._window:
            old_messages, old_bad = self._batches.popleft()
            self._messages -= old_messages
            self._bad -= old_bad
