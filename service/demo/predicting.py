"""The stream of predictions: images of the cameras, classified, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


class PredictionStream:
    """Makes the stream's records, and writes to a journal what it made, and whether it is true.

    Args:
        world: the images.
        classifier: predicts them.
        journal: of the predictions.
        degrade_after_seconds: when one camera degrades, counted from the start.
        first: number of the first item.
    """

    def __init__(
        self,
        world: World,
        classifier: Classifier,
        journal: Journal,
        *,
        degrade_after_seconds: float,
        first: int = 0,
    ) -> None:
        self._world = world
        self._classifier = classifier
        self._journal = journal
        self._degrade_after_seconds = degrade_after_seconds
        self._degrades_at = float("inf")
        self._degraded = False
        self._next = first
        self._records_made = 0

    def start(self, now: float) -> None:
        """Begin: the camera degrades this many seconds from now."""
        self._degrades_at = now + self._degrade_after_seconds
        self._journal.write(Mark(STREAMING, now))

    def records(self, now: float, count: int) -> Iterator[Record]:
        """Records with the next `count` predictions.

        The camera's degradation is in the pixels; the classifier predicts what it then sees.
        """
        if count < 1:
            return
        if not self._degraded and now >= self._degrades_at:
            self._degraded = True
            self._journal.write(Mark(DEGRADED, now))
        numbers = range(self._next, self._next + count)
        self._next += count
        pixels = self._world.pixels(numbers, degraded=self._degraded)
        cameras = self._world.cameras(numbers)
        predictions = self._classifier.predict(pixels)
        self._write_down(now, numbers, cameras, predictions)
        messages = [
            _message(
                item=item_id(n),
                now=now,
                camera=cameras[row],
                pixels=pixels[row],
                predictions=predictions,
                row=row,
            )
            for row, n in enumerate(numbers)
        ]
        start = 0
        while start < count:
            size = _SIZES[self._records_made % len(_SIZES)]
            yield _record(numbers[start], messages[start : start + size], now)
            self._records_made += 1
            start += size

    def _write_down(
        self, now: float, numbers: Sequence[int], cameras: list[str], predictions: Predictions
    ) -> None:
        predicted = [CLASSES[i] for i in predictions.predicted]
        self._journal.write(
            Produced(
                time=now,
                cameras=cameras,
                predicted=predicted,
                scores=predictions.probabilities.max(axis=1).tolist(),
                correct=[
                    name == self._world.true_class(n) for name, n in zip(predicted, numbers, strict=True)
                ],
            )
        )


def _message(
    *, item: str, now: float, camera: str, pixels: Floats, predictions: Predictions, row: int
) -> bytes:
    probabilities = predictions.probabilities[row].tolist()
    prediction = Prediction(
        model=MODEL,
        item_id=item,
        predicted_class=CLASSES[predictions.predicted[row]],
        score=max(probabilities),
        probabilities=probabilities,
        attributes={"camera": camera},
        time=datetime.fromtimestamp(now, UTC),
        payload=pixels.astype(int).tolist(),
        votes={name: CLASSES[votes[row]] for name, votes in predictions.votes.items()},
    )
    return prediction.model_dump_json(exclude_none=True).encode()


def _record(first: int, messages: list[bytes], now: float) -> Record:
    value = messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"
    headers = cloudevents_headers(
        event_type=PREDICTION_TYPE,
        event_id=item_id(first),
        source=_SOURCE,
        time=datetime.fromtimestamp(now, UTC),
    )
    return item_id(first).encode(), value, headers
