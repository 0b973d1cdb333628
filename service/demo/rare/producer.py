"""The producer of the rare class: `python -m service.demo.rare.producer` streams scored transactions.

A backlog comes first, as fast as it can be sent. Each transaction is predicted for every model.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from service.demo.journal import PRODUCER_FILE, STREAMING, Journal, Mark, TransactionsSent
from service.demo.process import GO_FILE, Record, parse_arguments
from service.demo.producer import publish, record_of
from service.demo.rare.configuration import MODELS
from service.demo.rare.transactions import CLASSES, THRESHOLD, Transactions, item_id
from service.domain.messages import Prediction

BACKLOG = 50_000
RATE = 500
"""Transactions per second after the backlog."""

_PER_RECORD = 50


class TransactionStream:
    """Makes the stream's records, and writes to a journal how many transactions there are, and frauds."""

    def __init__(self, transactions: Transactions, journal: Journal, *, backlog: int = BACKLOG) -> None:
        self._transactions, self._journal = transactions, journal
        self._number = 0  # of the next transaction
        self._backlog = backlog

    def start(self, now: float) -> None:
        """Begin."""
        self._journal.write(Mark(STREAMING, now))

    def records(self, now: float, count: int) -> Iterator[Record]:
        """Records with the next `count` transactions, and with the backlog the first time."""
        count, self._backlog = count + self._backlog, 0
        while count > 0:
            size = min(count, _PER_RECORD)
            numbers = range(self._number, self._number + size)
            self._number += size
            count -= size
            yield from self._batch(numbers, now)

    def _batch(self, numbers: range, now: float) -> Iterator[Record]:
        scores = self._transactions.scores(numbers)
        flagged = scores >= THRESHOLD
        time = datetime.fromtimestamp(now, UTC)
        for model in MODELS:
            yield record_of(
                [
                    Prediction(
                        model=model,
                        item_id=item_id(number),
                        predicted_class=CLASSES[int(flag)],
                        score=score if flag else 1 - score,
                        time=time,
                    )
                    for number, flag, score in zip(numbers, flagged, scores.tolist(), strict=True)
                ],
                now,
            )
        frauds = int(self._transactions.frauds(numbers).sum())
        self._journal.write(TransactionsSent(now, len(numbers), frauds))


if __name__ == "__main__":
    given = parse_arguments("Streams scored transactions of the demo of a rare class.")
    publish(
        given.config.kafka,
        lambda journal: TransactionStream(Transactions(given.seed), journal),
        path=given.folder / PRODUCER_FILE,
        may_begin=(given.folder / GO_FILE).exists,
        rate=RATE,
    )
