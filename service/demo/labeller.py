"""The demo's labeller: `python -m service.demo.labeller` answers label requests as people do.

`credence demo labeller` answers those that come through the Kafka of a configuration.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from service.config.settings import KafkaSettings
from service.demo.desk import Desk
from service.demo.journal import LABELLER_FILE, READY, Journal, Mark
from service.demo.process import Record, StopFlag, parse_arguments, sender
from service.demo.world import MODEL, World, load_split
from service.domain.messages import LABEL_TYPE, Label, LabelRequest, cloudevents_headers
from service.kafka.clients import build_consumer, build_producer
from service.kafka.topic_metadata import join

_SOURCE = "demo/labeller"
_POLL_MILLISECONDS = 50


def main() -> None:
    """Answer until SIGTERM, started by the demo that brings its own servers."""
    arguments = parse_arguments("Answers the demo's label requests.")
    answer_requests(arguments.settings.kafka, seed=arguments.seed, path=arguments.folder / LABELLER_FILE)


def answer_requests(kafka: KafkaSettings, *, seed: int, path: Path = Path(os.devnull)) -> None:
    """Answer until SIGTERM, with a journal at this path; the seed is that of the producer's world."""
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    world = World(seed, load_split(seed))
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(path))
        consumer = build_consumer(kafka, group="demo-labeller", without_offset="earliest")
        stack.callback(consumer.close, autocommit=False)
        producer = build_producer(kafka, name="demo-labeller")
        stack.callback(producer.close, timeout=3)
        send = sender(producer, kafka.topics.labels)
        desk, is_ready = Desk(world, seed, journal), False
        join(consumer, kafka.topics.label_requests)
        while not stop.requested:
            polled = consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            if not is_ready and consumer.assignment():
                is_ready = True
                journal.write(Mark(READY, time.time()))
            for record in chain.from_iterable(polled.values()):
                request = LabelRequest.model_validate_json(record.value)
                if request.model == MODEL:
                    desk.take(request, time.time())
            if polled:
                # Requests on the desk of a labeller that stops are issued again; one that could not commit
                # answers twice.
                consumer.commit_async()
            now = time.time()
            for label in desk.labels(now):
                send(_record(label, now))


def _record(label: Label, now: float) -> Record:
    headers = cloudevents_headers(
        event_type=LABEL_TYPE,
        event_id=uuid.uuid4().hex,
        source=_SOURCE,
        time=datetime.fromtimestamp(now, UTC),
    )
    return label.item_id.encode(), label.model_dump_json(exclude_none=True).encode(), headers


if __name__ == "__main__":
    main()
