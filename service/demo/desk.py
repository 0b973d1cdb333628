"""The labeller's desk: how people answer label requests.

They are prompt or late, answer twice, skip, err and correct themselves. The truth comes from the item's
number alone; what the model predicted is never known here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from service.demo.journal import Answered, Asked, Journal
from service.demo.world import World, item_number
from service.domain.messages import Label, LabelKind, LabelRequest

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


@dataclass(order=True)
class _Due:
    at: float
    order: int
    request: LabelRequest = field(compare=False)
    intention: Intention = field(compare=False)


@dataclass
class Desk:
    """The requests on the labeller's desk, and when each is to be answered.

    Everything that arrives or is sent goes to the journal.
    """

    world: World
    seed: int
    journal: Journal
    _due: list[_Due] = field(default_factory=list, init=False)
    _order: int = field(default=0, init=False)
    _answered: set[str] = field(default_factory=set, init=False)

    def take(self, request: LabelRequest, now: float) -> None:
        """Put one request on the desk."""
        self.journal.write(Asked(now, request.request_id, request.attempt))
        number = item_number(request.item_id)
        rng = np.random.default_rng((self.seed, 2, number, request.attempt))
        for intention in intentions(request, self.world.true_class(number), rng):
            self._order += 1
            heapq.heappush(self._due, _Due(now + intention.after_seconds, self._order, request, intention))

    def labels(self, now: float) -> Iterable[Label]:
        """Labels that are due; each is taken off the desk, and written to the journal."""
        while self._due and self._due[0].at <= now:
            due = heapq.heappop(self._due)
            is_first = due.intention.kind == "answer" and due.request.request_id not in self._answered
            if is_first:
                self._answered.add(due.request.request_id)
            yield Label(
                request_id=due.request.request_id,
                model=due.request.model,
                item_id=due.request.item_id,
                kind=due.intention.kind,
                true_class=due.intention.true_class,
                annotator=ANNOTATOR,
                time=datetime.fromtimestamp(now, UTC),
            )
            self.journal.write(Answered(now, due.intention.kind, is_first))
