"""What a seed sends: predictions of two models, in disorder, and what people say to requests.

Everything follows from the seed and an item's number, so that it can be asked for again at any time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.domain.messages import LabelRequest

CLASSES = ("cat", "dog", "owl")
REGIONS = ("north", "south", "west")
MODEL = "sorter"
"""Of its items, each is labelled by one person."""

PANEL = "panel"
"""Of its items, each is labelled by several people, and some are gold items."""

PEOPLE = ("ana", "ben", "eve", "kim", "leo", "mia")
"""Two more than label an item."""

GOLD_FILE = Path(__file__).with_name("gold.jsonl")
"""Gold items of the panel. Some are items of the traffic, too."""

LATE_ANSWER_SECONDS = 1.8
"""Longer than the shorter of the two leases in the configuration."""

_CLOSING = 10**6
"""Items from this number on are those of the last records."""

_AGREE = 0.8
"""Share of the labels that are the class most people give an item."""


def gold_items() -> dict[str, dict[str, Any]]:
    """The rows of the file of gold items, by item."""
    rows = [json.loads(line) for line in GOLD_FILE.read_text(encoding="utf-8").splitlines()]
    return {row["item_id"]: row for row in rows}


@dataclass(frozen=True)
class Message:
    """One record to send.

    Attributes:
        key: of the record.
        value: of the record.
        wait_seconds: how long to wait before it is sent, from when it was thought of.
    """

    key: bytes
    value: bytes
    wait_seconds: float = 0.0


class Workload:
    """The messages of one seed.

    Args:
        seed: decides everything.
        began: when it begins, seconds since the epoch.
    """

    def __init__(self, seed: int, *, began: float) -> None:
        self._seed = seed
        self._began = began

    def _rng(self, *parts: object) -> random.Random:
        return random.Random(f"{self._seed}/{'/'.join(map(str, parts))}")

    def prediction(self, number: int, model: str = "") -> dict[str, Any]:
        """The prediction of one item: some are late, some claim a time in the future, some have no time.

        An item belongs to one of the models, if none is named.
        """
        rng = self._rng("prediction", number)
        predicted, region = rng.choice(CLASSES), rng.choices(REGIONS, [5, 2, 1])[0]
        message: dict[str, Any] = {
            "model": model or rng.choice((MODEL, PANEL)),
            "item_id": f"item-{number:06d}",
            "attributes": {"region": region},
            "payload": {"picture": number},
        }
        if rng.random() < 0.5:
            message |= {"predicted_class": predicted, "score": round(rng.uniform(0.4, 1.0), 6)}
        else:
            parts = [rng.random() ** 3 for _ in CLASSES]
            message["probabilities"] = [part / sum(parts) for part in parts]
        when = rng.random()
        shift = (
            rng.uniform(-3 * 86_400, 0) if when < 0.15 else rng.uniform(400, 86_400) if when < 0.25 else 0.0
        )
        if when < 0.8:
            message["time"] = _iso(self._began + number * 0.003 + shift)
        return message

    def predictions(self, start: int, count: int) -> Iterator[Message]:
        """Records of some items: shuffled, some twice, some several in one record, and a few bad ones."""
        rng = self._rng("records", start)
        numbers = list(range(start, start + count))
        rng.shuffle(numbers)
        while numbers:
            number = numbers.pop()
            key = f"item-{number:06d}".encode()
            value = json.dumps(self.prediction(number)).encode()
            case = rng.random()
            if case < 0.01:
                value = b'{"model": "sorter", '
            elif case < 0.02:
                value = json.dumps(self.prediction(number) | {"model": "unknown"}).encode()
            elif case < 0.05 and numbers:
                value = json.dumps([self.prediction(number), self.prediction(numbers.pop())]).encode()
            yield Message(key, value)
            if case > 0.95 and b'"time"' in value:  # else the two are of different times
                yield Message(key, value)

    def closing(self, partition: int) -> Message:
        """The last record of a partition, which has a prediction of each model.

        A consumer stores the offsets of models without new predictions only every few seconds.
        """
        numbers = enumerate((MODEL, PANEL), start=_CLOSING + 2 * partition)
        last = [self.prediction(number, model) for number, model in numbers]
        return Message(b"closing", json.dumps(last).encode())

    def true_class(self, item_id: str) -> str:
        """What an item is."""
        return self._rng("truth", item_id).choice(CLASSES)

    def labels(self, request: LabelRequest) -> list[Message]:
        """What people say to one attempt at a request, in order but for what is said later.

        Nobody is chosen for two requests of an item. But somebody may answer a second time, or at the same
        time as somebody else, and corrections may come when the next person has been asked.
        """
        rng = self._rng("label", request.request_id, request.attempt)
        truth = self.true_class(request.item_id)
        wrong = next(name for name in CLASSES if name != truth)
        if rng.random() > _AGREE:
            truth, wrong = wrong, truth
        people = self._rng("people", request.item_id).sample(PEOPLE, len(PEOPLE))
        by, before = people[request.opinion - 1], people[max(request.opinion - 2, 0)]
        spare, corrector = people[-2:]

        def say(kind: str, true_class: str | None, nonce: int = 1, who: str = by) -> Message:
            return self._label(request, kind, true_class, nonce=nonce, annotator=who)

        answer, mistaken = say("answer", truth), say("answer", wrong)
        stranger = request.model_copy(update={"request_id": f"unknown-{request.request_id}"})
        to_nobody = self._label(stranger, "answer", truth, nonce=1, annotator=by)
        cases: list[tuple[float, list[Message]]] = [
            (0.44, [answer]),
            (0.06, [answer, answer]),
            (0.05, [answer, say("answer", wrong, 2)]),
            (0.05, [mistaken, say("correction", truth, 2)]),
            (0.04, [answer, say("retraction", None, 2)]),
            (0.03, [say("skip", None)]),
            (0.02, [say("skip", None), say("correction", truth, 2)]),
            (0.06, [_later(answer, LATE_ANSWER_SECONDS)]),
            (0.02, [to_nobody, answer]),
            (0.04, []),
            (0.04, rng.sample([answer, say("answer", truth, 2, spare)], 2)),
            (0.04, rng.sample([answer, say("answer", wrong, 2, spare)], 2)),
            (0.05, [say("answer", wrong, 2, before), answer]),
            (0.03, [mistaken, _later(say("correction", truth, 2, corrector), rng.uniform(0.3, 1.2))]),
            (0.03, [answer, _later(answer, rng.uniform(0.3, 1.2))]),
        ]
        said = rng.choices([said for _, said in cases], [often for often, _ in cases])[0]
        thinking = rng.choice((0.0, 0.0, rng.uniform(0.0, 0.3)))
        return [_later(message, thinking) for message in said]

    def _label(
        self, request: LabelRequest, kind: str, true_class: str | None, *, nonce: int, annotator: str
    ) -> Message:
        label: dict[str, Any] = {
            "request_id": request.request_id,
            "model": request.model,
            "item_id": request.item_id,
            "kind": kind,
            "annotator": annotator,
            "time": _iso(request.requested_at.timestamp() + 0.001 * nonce),
        }
        if true_class is not None:
            label["true_class"] = true_class
        return Message(request.item_id.encode(), json.dumps(label).encode())


def _later(message: Message, seconds: float) -> Message:
    return replace(message, wait_seconds=message.wait_seconds + seconds)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
