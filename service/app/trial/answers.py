"""Answers label requests from a file's true classes, in a thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kafka.errors import KafkaError

from service.app.trial.ledger import Ledger
from service.config.settings import KafkaSettings
from service.demo.children import ChildDiedError
from service.demo.journal import JournalReader, LabelSent
from service.demo.labeller import Intention, Plan, answer_requests
from service.demo.process import SendError
from service.domain.errors import CredenceError
from service.domain.messages import LabelRequest

_SEED = 2


@dataclass(frozen=True)
class Answering:
    """How requests are answered.

    Attributes:
        delay_seconds: from a request to its answer.
        noise: share of answers that name a wrong class, drawn evenly among the others.
    """

    delay_seconds: float = 0.0
    noise: float = 0.0


def truth_plan(ledger: Ledger, answering: Answering) -> Plan:
    """What the truth column answers; items without a true class are skipped."""
    rng = np.random.default_rng(_SEED)

    def plan(request: LabelRequest) -> list[Intention]:
        truth = ledger.true_class(request.item_id)
        if truth is None:
            return [Intention(answering.delay_seconds, "skip", None)]
        if rng.random() < answering.noise:
            truth = str(rng.choice([name for name in request.classes if name != truth]))
        return [Intention(answering.delay_seconds, "answer", truth)]

    return plan


class TruthLabeller:
    """Answers the requests of one model until it is stopped.

    Args:
        kafka: settings of the trial's broker.
        model: whose requests it answers.
        plan: what it answers.
        journal: file that says what was answered.
    """

    def __init__(self, kafka: KafkaSettings, model: str, plan: Plan, journal: Path) -> None:
        self._kafka, self._model, self._plan, self._journal = kafka, model, plan, journal
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._answer, name="truth-labeller", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until no more labels are sent."""
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        """Raise `ChildDiedError` if the thread has ended."""
        if self._failure is not None:
            what = "the labeller that answers from true classes ended unexpectedly"
            raise ChildDiedError(what, repr(self._failure)) from self._failure

    def labelled_items(self) -> list[str]:
        """Items that were answered with a class, in order."""
        sent = (each for each in JournalReader(self._journal).new_entries() if isinstance(each, LabelSent))
        return [each.item_id for each in sent if each.is_first]

    def _answer(self) -> None:
        try:
            answer_requests(
                self._kafka,
                self._plan,
                models=[self._model],
                path=self._journal,
                should_stop=self._stopping.is_set,
            )
        except (CredenceError, KafkaError, SendError, OSError) as error:
            self._failure = error
