"""The demo's labeller: `python -m service.demo.labeller` answers label requests as people do."""

from __future__ import annotations

import signal
import time
import uuid
from datetime import UTC, datetime

from service.clients import build_consumer, build_producer
from service.contract import LABEL_TYPE, Label, LabelRequest, cloudevents_headers
from service.demo.desk import Desk
from service.demo.journal import LABELLER_FILE, READY, Journal, Mark
from service.demo.process import Arguments, Record, StopFlag, parse_arguments, sender
from service.demo.world import World, load_split

_SOURCE = "demo/labeller"
_POLL_MILLISECONDS = 50


def main() -> None:
    """Answer until SIGTERM."""
    arguments = parse_arguments("Answers the demo's label requests.")
    world = World(arguments.seed, load_split(arguments.seed))
    with Journal(arguments.folder / LABELLER_FILE) as journal:
        run(arguments, Desk(world, arguments.seed, journal), journal)


def run(arguments: Arguments, desk: Desk, journal: Journal) -> None:
    """Consume requests and send what is due, until SIGTERM."""
    stop = StopFlag(signal.SIGTERM)
    kafka = arguments.settings.kafka
    consumer = build_consumer(kafka, group="demo-labeller", without_offset="earliest")
    producer = build_producer(kafka, name="demo-labeller")
    send = sender(producer, kafka.topics.labels)
    is_ready = False
    try:
        consumer.subscribe([kafka.topics.label_requests])
        while not stop.requested:
            polled = consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            if not is_ready and consumer.assignment():
                is_ready = True
                journal.write(Mark(READY, time.time()))
            for record in (record for records in polled.values() for record in records):
                desk.take(LabelRequest.model_validate_json(record.value), time.time())
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
