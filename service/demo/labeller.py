"""The demo's labeller: `python -m service.demo.labeller` answers label requests as people do.

They are prompt or late, answer twice, skip, err and correct themselves. The truth comes from the item's
number alone; what the model predicted is never known here. `credence demo labeller` answers requests that
come through the Kafka of a configuration.
"""

from __future__ import annotations

import heapq
import os
import signal
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

import numpy as np

from service.config.settings import KafkaSettings
from service.demo.journal import LABELLER_FILE, LABELLER_READY, Journal, LabelSent, Mark, RequestReceived
from service.demo.process import Record, StopFlag, parse_arguments, sender
from service.demo.world import MODEL, World, item_number, load_split
from service.domain.messages import LABEL_TYPE, Label, LabelKind, LabelRequest, cloudevents_headers
from service.kafka.clients import build_consumer, build_producer
from service.kafka.topic_metadata import join

ANNOTATOR = "demo"
_PROMPT_SECONDS = (0.2, 1.0)
_SECOND_THOUGHT_SECONDS = (0.5, 1.5)
_LATE_SECONDS = (0.3, 1.5)
_LATE, _TWICE, _SKIP, _WRONG = 0.04, 0.04, 0.03, 0.04


@dataclass(frozen=True)
class Intention:
    """One label that the labeller will send, this many seconds after it saw the request."""

    after_seconds: float
    kind: LabelKind
    true_class: str | None


def intentions(request: LabelRequest, truth: str, rng: np.random.Generator) -> list[Intention]:
    """What the labeller does with one request, in the order of time, given the item's true class.

    Only first attempts are answered late, so that every item is answered in the end.
    """
    prompt = float(rng.uniform(*_PROMPT_SECONDS))
    later = prompt + float(rng.uniform(*_SECOND_THOUGHT_SECONDS))
    allowed = (request.deadline - request.requested_at).total_seconds()
    too_late = allowed + float(rng.uniform(*_LATE_SECONDS))
    wrong = str(rng.choice([name for name in request.classes if name != truth]))
    mood = float(rng.random())
    for share, plan in (
        (_LATE, [Intention(too_late if request.attempt == 1 else prompt, "answer", truth)]),
        (_TWICE, [Intention(prompt, "answer", truth), Intention(later, "answer", truth)]),
        (_SKIP, [Intention(prompt, "skip", None)]),
        (_WRONG, [Intention(prompt, "answer", wrong), Intention(later, "correction", truth)]),
    ):
        if mood < share:
            return plan
        mood -= share
    return [Intention(prompt, "answer", truth)]


Plan = Callable[[LabelRequest], list[Intention]]
"""What a labeller does with a request, in the order of time."""


def human_plan(seed: int) -> Plan:
    """What people do with images of the world with this seed."""
    world = World(seed, load_split(seed))

    def plan(request: LabelRequest) -> list[Intention]:
        item = item_number(request.item_id)
        rng = np.random.default_rng((seed, 2, item, request.attempt))
        return intentions(request, world.true_class(item), rng)

    return plan


class Labeller:
    """The requests that the labeller saw, and when each is to be answered.

    Everything that arrives or is sent goes to the journal.
    """

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        # By the time when it is due, and of equal ones by its number.
        self._due: list[tuple[float, int, LabelRequest, Intention]] = []
        self._numbers = count()
        self._answered: set[str] = set()

    def take(self, request: LabelRequest, now: float) -> None:
        """Decide how to answer a request, and when."""
        self._journal.write(RequestReceived(now, request.request_id, request.attempt))
        for intention in self._plan(request):
            at = now + intention.after_seconds
            heapq.heappush(self._due, (at, next(self._numbers), request, intention))

    def labels(self, now: float) -> Iterable[Label]:
        """Labels that are due, each once."""
        while self._due and self._due[0][0] <= now:
            *_, request, intention = heapq.heappop(self._due)
            is_first = intention.kind == "answer" and request.request_id not in self._answered
            if is_first:
                self._answered.add(request.request_id)
            yield Label(
                request_id=request.request_id,
                model=request.model,
                item_id=request.item_id,
                kind=intention.kind,
                true_class=intention.true_class,
                annotator=ANNOTATOR,
                time=datetime.fromtimestamp(now, UTC),
            )
            about = request.model, request.item_id, intention.true_class
            self._journal.write(LabelSent(now, intention.kind, is_first, *about))


_SOURCE = "demo/labeller"
_POLL_MILLISECONDS = 50


def answer_requests(
    kafka: KafkaSettings,
    plan: Plan,
    *,
    models: Collection[str] = (MODEL,),
    path: Path = Path(os.devnull),
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Answer requests about some models, with a journal at this path.

    It returns at SIGTERM or Ctrl-C; with `should_stop`, which a thread needs, as soon as that is true.
    """
    should_stop = should_stop or _has_signal()
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(path))
        consumer = build_consumer(kafka, group="demo-labeller", without_offset="earliest")
        stack.callback(consumer.close, autocommit=False)
        producer = build_producer(kafka, name="demo-labeller")
        stack.callback(producer.close, timeout=3)
        send = sender(producer, kafka.topics.labels)
        labeller, is_ready = Labeller(plan, journal), False
        join(consumer, kafka.topics.label_requests)
        while not should_stop():
            polled = consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            if not is_ready and consumer.assignment():
                is_ready = True
                journal.write(Mark(LABELLER_READY, time.time()))
            for record in chain.from_iterable(polled.values()):
                request = LabelRequest.model_validate_json(record.value)
                if request.model in models:
                    labeller.take(request, time.time())
            if polled:
                # Requests that a labeller took before it stopped are issued again; one that could not commit
                # answers twice.
                consumer.commit_async()
            now = time.time()
            for label in labeller.labels(now):
                send(_record(label, now))


def _has_signal() -> Callable[[], bool]:
    stop = StopFlag(signal.SIGTERM, signal.SIGINT)
    return lambda: stop.requested


def _record(label: Label, now: float) -> Record:
    headers = cloudevents_headers(
        event_type=LABEL_TYPE,
        event_id=uuid.uuid4().hex,
        source=_SOURCE,
        time=datetime.fromtimestamp(now, UTC),
    )
    return label.item_id.encode(), label.model_dump_json(exclude_none=True).encode(), headers


if __name__ == "__main__":
    given = parse_arguments("Answers the demo's label requests.")
    answer_requests(given.config.kafka, human_plan(given.seed), path=given.folder / LABELLER_FILE)
