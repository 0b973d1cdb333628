"""The demo's labeller: `python -m service.demo.labeller` answers label requests as people do.

`credence demo labeller` answers those that come through the Kafka of a configuration.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from service.config.settings import KafkaSettings
from service.demo.desk import Desk
from service.demo.journal import LABELLER_FILE, READY, Journal, Mark
from service.demo.process import Record, StopFlag, parse_arguments, sender
from service.demo.world import MODEL, World, load_split
from service.domain.messages import LABEL_TYPE, Label, LabelRequest, cloudevents_headers
from service.kafka.clients import build_consumer, build_producer
from service.kafka.membership import join

_SOURCE = "demo/labeller"
_POLL_MILLISECONDS = 50


def main() -> None:
    """Answer until SIGTERM, started by the demo that brings its own servers."""
    arguments = parse_arguments("Answers the demo's label requests.")
    with Journal(arguments.folder / LABELLER_FILE) as journal:
        _answer(arguments.settings.kafka, journal, seed=arguments.seed)


def answer_requests(kafka: KafkaSettings, *, seed: int) -> None:
    """Answer until SIGTERM, without a journal; the seed is that of the producer's world."""
    with Journal(Path(os.devnull)) as journal:
        _answer(kafka, journal, seed=seed)


def _answer(kafka: KafkaSettings, journal: Journal, *, seed: int) -> None:
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    desk = Desk(World(seed, load_split(seed)), seed, journal)
    consumer = build_consumer(kafka, group="demo-labeller", without_offset="earliest")
    producer = build_producer(kafka, name="demo-labeller")
    send = sender(producer, kafka.topics.labels)
    is_ready = False
    try:
        join(consumer, kafka.topics.label_requests)
        while not stop.requested:
            polled = consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            if not is_ready and consumer.assignment():
                is_ready = True
                journal.write(Mark(READY, time.time()))
            for record in (record for records in polled.values() for record in records):
                request = LabelRequest.model_validate_json(record.value)
                if request.model == MODEL:
                    desk.take(request, time.time())
            if polled:
                # What was on the desk when a labeller left is asked again; what one that could not commit has
                # answered is answered twice.
                consumer.commit_async()
            now = time.time()
            for label in desk.labels(now):
                send(_record(label, now))
    finally:
        producer.close(timeout=3)
        consumer.close(autocommit=False)


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
