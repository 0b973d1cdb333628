"""Where bad messages go, and when there are too many of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from service.domain.errors import BadMessage, TooManyBadMessages


@dataclass(frozen=True)
class Place:
    """Place of a message in its source topic, which identifies the message.

    Attributes:
        offset: of the source record.
        index: position in an array of predictions; None for a single message.
        timestamp_ms: of the source record, since the epoch, as a recreated topic repeats offsets; None in
            letters without it.
    """

    topic: str
    partition: int
    offset: int
    index: int | None
    timestamp_ms: int | None

    def __str__(self) -> str:
        """For people: topic/partition/offset#index."""
        index = "" if self.index is None else f"#{self.index}"
        return f"{self.topic}/{self.partition}/{self.offset}{index}"

    @property
    def identity(self) -> str:
        """For programs: with the timestamp."""
        return f"{self}@{'' if self.timestamp_ms is None else self.timestamp_ms}"


@dataclass(frozen=True)
class Rejected:
    """A message that cannot be used: a Kafka record, or one of the predictions in it.

    Attributes:
        index: position in an array of predictions; None for the record as a whole.
        element: the prediction's text as a native message, with `index`.
    """

    record: Any
    error: BadMessage
    index: int | None = None
    element: bytes | None = None

    @property
    def value(self) -> bytes:
        """The message's bytes."""
        return self.element if self.element is not None else self.record.value or b""

    @property
    def place(self) -> Place:
        """Where the message is in its source topic."""
        record = self.record
        return Place(record.topic, record.partition, record.offset, self.index, record.timestamp)


class DeadLetterSink(Protocol):
    """Stores rejected messages."""

    def send(self, rejected: Sequence[Rejected]) -> None:
        """Return once all are stored.

        Raises:
            Unavailable: they cannot be stored now; send the same ones again later.
        """


class BadMessageLimit:
    """Limit on the share of bad messages among the last `window` messages.

    Offsets do not count, so gaps in a topic (compaction, transactions) change nothing. The limit is
    exceeded once more than `ratio` of a whole window is bad, even if the window is not full yet: later good
    messages could not change that.

    A batch counts as a whole. A batch larger than the window is judged with what is left of the window
    before it, so good messages at its beginning dilute bad ones at its end.
    """

    def __init__(self, *, ratio: float, window: int) -> None:
        self._ratio = ratio
        self._window = window
        self._batches: deque[tuple[int, int]] = deque()
        self._messages = 0
        self._bad = 0

    def check(self, *, messages: int, bad: int) -> None:
        """Check whether a batch would be admitted, without counting it.

        Raises:
            TooManyBadMessages: it would exceed the limit.
        """
        total, total_bad = self._messages + messages, self._bad + bad
        if bad and total_bad > self._ratio * max(total, self._window):
            raise TooManyBadMessages(
                f"{total_bad} of the last {total} messages cannot be used; the consumer pauses and discards "
                "nothing more. Fix the producer or the configuration, then restart"
            )

    def admit(self, *, messages: int, bad: int) -> None:
        """Count one batch; call it before anything of the batch is discarded.

        Raises:
            TooManyBadMessages: more than `ratio` of the window would be bad. The batch is not counted, so
                a second attempt gives the same answer.
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
