"""The stream of predictions: images of the cameras, classified, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from service.demo.classifier import Classifier, Predictions
from service.demo.journal import DEGRADED, STREAMING, Journal, Mark, Produced
from service.demo.process import Record
from service.demo.world import CLASSES, MODEL, RATE, World, item_id
from service.domain.arrays import Floats
from service.domain.messages import PREDICTION_TYPE, Prediction, cloudevents_headers

_PERIOD_SECONDS = 0.1
_LONGEST_BURST_SECONDS = 0.5
_SOURCE = "demo/digits"
_SIZES = (1, 1, 1, 9, 1, 1, 16)
"""Predictions per record, cyclically: most records hold one, most predictions come in arrays."""


def run(
    stream: PredictionStream,
    send: Callable[[Record], None],
    *,
    stop_requested: Callable[[float], bool],
    clock: Callable[[], float],
) -> None:
    """Send what is due, every tenth of a second, until asked to stop.

    `stop_requested` waits this many seconds, and is True if the stream should stop; `clock` is in seconds
    since the epoch.
    """
    last = clock()
    stream.start(last)
    while not stop_requested(_PERIOD_SECONDS):
        now = clock()
        for record in stream.records(now, round(RATE * min(now - last, _LONGEST_BURST_SECONDS))):
            send(record)
        last = now


@dataclass
class PredictionStream:
    """Makes the stream's records, and writes to a journal what it made, and whether it is true."""

    world: World
    classifier: Classifier
    journal: Journal
    degrade_after_seconds: float  # when one camera degrades, counted from the start
    number: int = 0  # of the next item
    _degrades_at: float = field(default=float("inf"), init=False)
    _is_degraded: bool = field(default=False, init=False)
    _records_made: int = field(default=0, init=False)

    def start(self, now: float) -> None:
        """Begin: the camera degrades this many seconds from now."""
        self._degrades_at = now + self.degrade_after_seconds
        self.journal.write(Mark(STREAMING, now))

    def records(self, now: float, count: int) -> Iterator[Record]:
        """Records with the next `count` predictions.

        The camera's degradation is in the pixels; the classifier predicts what it then sees.
        """
        if count < 1:
            return
        if not self._is_degraded and now >= self._degrades_at:
            self._is_degraded = True
            self.journal.write(Mark(DEGRADED, now))
        numbers = range(self.number, self.number + count)
        self.number += count
        pixels = self.world.pixels(numbers, degraded=self._is_degraded)
        cameras = self.world.cameras(numbers)
        predictions = self.classifier.predict(pixels)
        predicted = [CLASSES[i] for i in predictions.predicted]
        truths = map(self.world.true_class, numbers)
        self.journal.write(
            Produced(
                time=now,
                cameras=cameras,
                predicted=predicted,
                scores=predictions.probabilities.max(axis=1).tolist(),
                correct=[name == truth for name, truth in zip(predicted, truths, strict=True)],
            )
        )
        messages = _messages(now, numbers, cameras, pixels, predictions)
        start = 0
        while start < count:
            size = _SIZES[self._records_made % len(_SIZES)]
            yield _record(numbers[start], messages[start : start + size], now)
            self._records_made += 1
            start += size


def _messages(
    now: float, numbers: Sequence[int], cameras: Sequence[str], pixels: Floats, predictions: Predictions
) -> list[bytes]:
    """The predictions one by one, as they go on the wire."""
    messages = []
    for row, probabilities in enumerate(predictions.probabilities.tolist()):
        prediction = Prediction(
            model=MODEL,
            item_id=item_id(numbers[row]),
            predicted_class=CLASSES[predictions.predicted[row]],
            score=max(probabilities),
            probabilities=probabilities,
            attributes={"camera": cameras[row]},
            time=datetime.fromtimestamp(now, UTC),
            payload=pixels[row].astype(int).tolist(),
            votes={name: CLASSES[votes[row]] for name, votes in predictions.votes.items()},
        )
        messages.append(prediction.model_dump_json(exclude_none=True).encode())
    return messages


def _record(first: int, messages: list[bytes], now: float) -> Record:
    value = messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"
    headers = cloudevents_headers(
        event_type=PREDICTION_TYPE,
        event_id=item_id(first),
        source=_SOURCE,
        time=datetime.fromtimestamp(now, UTC),
    )
    return item_id(first).encode(), value, headers
