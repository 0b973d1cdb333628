"""The demo's producer: `python -m service.demo.producer` classifies held-out images and streams predictions.

`credence demo producer` streams them to the Kafka of a configuration.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from service.config.settings import KafkaSettings
from service.demo.journal import (
    DEGRADED,
    PRODUCER_FILE,
    PRODUCER_READY,
    REPAIRED,
    STREAMING,
    Journal,
    Mark,
    PredictionsSent,
)
from service.demo.process import GO_FILE, REPAIR_FILE, Record, StopFlag, parse_arguments, sender
from service.demo.world import BRIGHTEST, CLASSES, DEGRADES_AFTER, MODEL, RATE, World, item_id, load_split
from service.domain.arrays import Floats, Indices
from service.domain.messages import PREDICTION_TYPE, Prediction, cloudevents_headers
from service.kafka.clients import build_producer

_DECIMALS = 6
_LOOK_SECONDS = 0.05
_PERIOD_SECONDS = 0.1
_LONGEST_BURST_SECONDS = 0.5
_SIZES = (1, 1, 1, 9, 1, 1, 16)
"""Predictions per record, cyclically: most records hold one, most predictions come in arrays."""


@dataclass(frozen=True)
class Predictions:
    """Predictions of a batch of images."""

    probabilities: Floats  # [n, classes]: as they go on the wire
    predicted: Indices  # index of the most probable class [n]
    votes: dict[str, Indices]  # per member, the index of the class that it predicts [n]


class Classifier:
    """A soft-voting ensemble of scikit-learn classifiers.

    It is trained on clean images [n, 8, 8] and the indices of their classes [n]; every class occurs.
    """

    def __init__(self, images: Floats, classes: Indices) -> None:
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra, slow to import
        from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415 - an extra, slow to import
        from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - an extra, slow to import

        self._members: dict[str, Any] = {
            "linear": LogisticRegression(C=20.0, max_iter=1_000),
            "neighbours": KNeighborsClassifier(n_neighbors=5),
            "bayes": GaussianNB(var_smoothing=0.05),
        }
        for member in self._members.values():
            member.fit(_features(images), classes)

    def predict(self, images: Floats) -> Predictions:
        """Predict a batch of images [n, 8, 8]."""
        features = _features(images)
        each = {name: member.predict_proba(features) for name, member in self._members.items()}
        probabilities: Floats = np.round(np.stack(list(each.values())).mean(axis=0), _DECIMALS)
        return Predictions(
            probabilities=probabilities,
            predicted=probabilities.argmax(axis=1),
            votes={name: member.argmax(axis=1) for name, member in each.items()},
        )


def _features(images: Floats) -> Floats:
    return images.reshape(len(images), -1) / BRIGHTEST


@dataclass
class PredictionStream:
    """Makes the stream's records, and writes to a journal what it made, and whether it is true."""

    world: World
    classifier: Classifier
    journal: Journal
    degrade_after_seconds: float  # when one camera degrades, counted from the start
    number: int = 0  # of the next item
    is_repaired: Callable[[], bool] = lambda: False  # whether the degraded camera is as before again
    _degrades_at: float = field(default=float("inf"), init=False)
    _is_degraded: bool = field(default=False, init=False)
    _repaired: bool = field(default=False, init=False)
    _sizes: Iterator[int] = field(default_factory=lambda: cycle(_SIZES), init=False)

    def start(self, now: float) -> None:
        """Begin: the camera degrades this many seconds from now."""
        self._degrades_at = now + self.degrade_after_seconds
        self.journal.write(Mark(STREAMING, now))

    def degrades(self, now: float) -> bool:
        """Whether the camera is to degrade now, at a time in seconds since the epoch."""
        return now >= self._degrades_at

    def _was_repaired(self, now: float) -> bool:
        if not self._repaired and self.is_repaired():
            self._repaired = True
            self.journal.write(Mark(REPAIRED, now))
        return self._repaired

    def payloads(self, _numbers: Sequence[int], pixels: Floats, /) -> list[Any]:
        """What people get to see of each item; `pixels` [n, 8, 8] are what the classifier sees."""
        return list(pixels.astype(int).tolist())

    def records(self, now: float, count: int) -> Iterator[Record]:
        """Records with the next `count` predictions.

        The camera's degradation is in the pixels; the classifier predicts what it then sees.
        """
        if count < 1:
            return
        if not self._is_degraded and self.degrades(now):
            self._is_degraded = True
            self.journal.write(Mark(DEGRADED, now))
        is_spoilt = self._is_degraded and not self._was_repaired(now)
        numbers = range(self.number, self.number + count)
        self.number += count
        pixels = self.world.pixels(numbers, degraded=is_spoilt)
        payloads = self.payloads(numbers, pixels)
        cameras = self.world.cameras(numbers)
        predictions = self.classifier.predict(pixels)
        truths = map(self.world.true_class, numbers)
        predicted = [CLASSES[i] for i in predictions.predicted]
        scores = predictions.probabilities.max(axis=1).tolist()
        correct = [name == truth for name, truth in zip(predicted, truths, strict=True)]
        self.journal.write(PredictionsSent(now, cameras, predicted, scores, correct))
        messages = [
            Prediction(
                model=MODEL,
                item_id=item_id(number),
                predicted_class=predicted[row],
                score=scores[row],
                probabilities=predictions.probabilities[row].tolist(),
                attributes={"camera": cameras[row]},
                time=datetime.fromtimestamp(now, UTC),
                payload=payloads[row],
                votes={name: CLASSES[votes[row]] for name, votes in predictions.votes.items()},
            )
            for row, number in enumerate(numbers)
        ]
        while messages:
            size = next(self._sizes)
            yield record_of(messages[:size], now)
            messages = messages[size:]


def record_of(predictions: list[Prediction], now: float) -> Record:
    """One record with all of these predictions."""
    messages = [prediction.model_dump_json(exclude_none=True).encode() for prediction in predictions]
    value = messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"
    first = predictions[0].item_id
    headers = cloudevents_headers(
        event_type=PREDICTION_TYPE,
        event_id=first,
        source=f"demo/{predictions[0].model}",
        time=datetime.fromtimestamp(now, UTC),
    )
    return first.encode(), value, headers


class Stream(Protocol):
    """A stream of predictions."""

    def start(self, now: float) -> None:
        """Begin."""

    def records(self, now: float, count: int) -> Iterator[Record]:
        """Records with the next `count` predictions."""


def run(
    stream: Stream,
    send: Callable[[Record], None],
    *,
    stop_requested: Callable[[float], bool],
    clock: Callable[[], float],
    rate: float = RATE,
) -> None:
    """Send what is due, every tenth of a second, until asked to stop.

    `stop_requested` waits this many seconds, and is True if the stream should stop; `clock` is in seconds
    since the epoch, and `rate` in predictions per second.
    """
    last = clock()
    stream.start(last)
    while not stop_requested(_PERIOD_SECONDS):
        now = clock()
        for record in stream.records(now, round(rate * min(now - last, _LONGEST_BURST_SECONDS))):
            send(record)
        last = now


def produce(
    kafka: KafkaSettings,
    *,
    seed: int,
    seconds: float,
    first: int = 0,
    path: Path = Path(os.devnull),
    may_begin: Callable[[], bool] = lambda: True,
    is_repaired: Callable[[], bool] = lambda: False,
) -> None:
    """Train, then stream until SIGTERM, with a journal at this path; the labeller has the same seed.

    Items are numbered from `first` on. After a part of the seconds a camera degrades, until it is repaired.
    """

    def trained(journal: Journal) -> PredictionStream:
        digits = load_split(seed)
        classifier = Classifier(digits.training_images, digits.training_classes)
        return PredictionStream(
            World(seed, digits), classifier, journal, DEGRADES_AFTER * seconds, first, is_repaired
        )

    publish(kafka, trained, path=path, may_begin=may_begin)


def publish(
    kafka: KafkaSettings,
    make: Callable[[Journal], Stream],
    *,
    path: Path,
    may_begin: Callable[[], bool],
    rate: float = RATE,
) -> None:
    """Make a stream with a journal at this path, and send it until SIGTERM, once it may begin."""
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(path))
        stream = make(journal)
        producer = build_producer(kafka, name="demo-producer")
        stack.callback(producer.close, timeout=3)
        journal.write(Mark(PRODUCER_READY, time.time()))
        while not may_begin() and not stop.wait(_LOOK_SECONDS):
            pass
        send = sender(producer, kafka.topics.predictions)
        run(stream, send, stop_requested=stop.wait, clock=time.time, rate=rate)


if __name__ == "__main__":
    given = parse_arguments("Streams the demo's predictions.")
    produce(
        given.config.kafka,
        seed=given.seed,
        seconds=given.seconds,
        path=given.folder / PRODUCER_FILE,
        may_begin=(given.folder / GO_FILE).exists,
        is_repaired=(given.folder / REPAIR_FILE).exists,
    )
