"""The demo's producer: `python -m service.demo.producer` streams predictions of held-out images.

`credence demo producer` streams them to the Kafka of a configuration.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from service.config.settings import KafkaSettings
from service.demo.classifier import Classifier
from service.demo.journal import PRODUCER_FILE, READY, Journal, Mark
from service.demo.predicting import PredictionStream, run
from service.demo.process import GO_FILE, StopFlag, parse_arguments, sender
from service.demo.world import DEGRADES_AFTER, RATE, World, load_split
from service.kafka.clients import build_producer

_LOOK_SECONDS = 0.05


def main() -> None:
    """Train, then stream until SIGTERM, started by the demo that brings its own servers."""
    arguments = parse_arguments("Streams the demo's predictions.")
    _stream(
        arguments.settings.kafka,
        arguments.folder / PRODUCER_FILE,
        seed=arguments.seed,
        seconds=arguments.seconds,
        may_begin=(arguments.folder / GO_FILE).exists,
    )


def produce(kafka: KafkaSettings, *, seed: int, seconds: float) -> None:
    """Train, then stream until SIGTERM, without a journal; the seed is that of the labeller's world.

    After a fraction of the seconds a camera degrades, and stays so.
    """
    # No item comes again after a restart: an item is asked for once.
    _stream(kafka, Path(os.devnull), seed=seed, seconds=seconds, first=round(time.time() * RATE))


def _stream(
    kafka: KafkaSettings,
    path: Path,
    *,
    seed: int,
    seconds: float,
    may_begin: Callable[[], bool] = lambda: True,
    first: int = 0,
) -> None:
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    digits = load_split(seed)
    classifier = Classifier(digits.training_images, digits.training_classes)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(path))
        producer = build_producer(kafka, name="demo-producer")
        stack.callback(producer.close, timeout=3)
        stream = PredictionStream(World(seed, digits), classifier, journal, DEGRADES_AFTER * seconds, first)
        journal.write(Mark(READY, time.time()))
        while not may_begin() and not stop.wait(_LOOK_SECONDS):
            pass
        run(stream, sender(producer, kafka.topics.predictions), stop_requested=stop.wait, clock=time.time)


if __name__ == "__main__":
    main()
