"""The demo's producer: `python -m service.demo.producer` streams predictions of held-out images."""

from __future__ import annotations

import signal
import time

from service.clients import build_producer
from service.demo.classifier import Classifier
from service.demo.journal import PRODUCER_FILE, READY, Journal, Mark
from service.demo.predicting import PredictionStream, run
from service.demo.process import GO_FILE, StopFlag, parse_arguments, sender
from service.demo.world import DEGRADES_AFTER, World, load_split

_LOOK_SECONDS = 0.05


def main() -> None:
    """Train, then stream until SIGTERM."""
    arguments = parse_arguments("Streams the demo's predictions.")
    stop = StopFlag(signal.SIGTERM)
    digits = load_split(arguments.seed)
    world = World(arguments.seed, digits)
    classifier = Classifier(digits.training_images, digits.training_classes)
    producer = build_producer(arguments.settings.kafka, name="demo-producer")
    topic = arguments.settings.kafka.topics.predictions
    with Journal(arguments.folder / PRODUCER_FILE) as journal:
        stream = PredictionStream(
            world, classifier, journal, degrade_after_seconds=DEGRADES_AFTER * arguments.seconds
        )
        journal.write(Mark(READY, time.time()))
        try:
            while not (arguments.folder / GO_FILE).exists() and not stop.wait(_LOOK_SECONDS):
                pass
            run(stream, sender(producer, topic), stop_requested=stop.wait, clock=time.time)
        finally:
            producer.close(timeout=3)


if __name__ == "__main__":
    main()
