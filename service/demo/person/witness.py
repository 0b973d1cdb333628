"""Reads the person's labels along with Credence: `python -m service.demo.person.witness`.

It writes every label to the journal beside the truth, which neither Credence nor the person knows.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from itertools import chain

from service.config.settings import KafkaSettings
from service.demo.journal import LABELLER_FILE, LABELLER_READY, Journal, LabelGiven, Mark
from service.demo.process import StopFlag, parse_arguments
from service.demo.world import World, item_number, load_split
from service.domain.messages import Label
from service.kafka.clients import build_consumer
from service.kafka.topic_metadata import join

_POLL_MILLISECONDS = 50


def entry_of(label: Label, world: World, now: float) -> LabelGiven:
    """What the journal says of one label of a request, at a time in seconds since the epoch."""
    number = item_number(label.item_id)
    return LabelGiven(
        time=now,
        request_id=label.request_id or "",
        kind=label.kind,
        true_class=label.true_class,
        truth=world.true_class(number),
        camera=world.cameras([number])[0],
    )


def witness(kafka: KafkaSettings, world: World, journal: Journal) -> None:
    """Write down labels until SIGTERM."""
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    with ExitStack() as stack:
        consumer = build_consumer(kafka, group="demo-witness", without_offset="earliest")
        stack.callback(consumer.close, autocommit=False)
        join(consumer, kafka.topics.labels)
        is_ready = False
        while not stop.requested:
            polled = consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            if not is_ready and consumer.assignment():
                is_ready = True
                journal.write(Mark(LABELLER_READY, time.time()))
            for record in chain.from_iterable(polled.values()):
                journal.write(entry_of(Label.model_validate_json(record.value), world, time.time()))


if __name__ == "__main__":
    given = parse_arguments("Reads the labels of the demo that a person labels.")
    with Journal(given.folder / LABELLER_FILE) as opened:
        witness(given.config.kafka, World(given.seed, load_split(given.seed)), opened)
