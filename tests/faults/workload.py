"""What a seed sends: predictions with known answers, in disorder, and what people say to requests.

Everything follows from the seed and an item's number, so that it can be asked for again at any time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from service.domain.messages import LabelRequest

CLASSES = ("cat", "dog", "owl")
REGIONS = ("north", "south", "west")
MODEL = "sorter"

LATE_ANSWER_SECONDS = 1.8
"""Longer than the shorter of the two leases in the configuration."""


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

    def prediction(self, number: int) -> dict[str, Any]:
        """The prediction of one item: some are late, some claim a time in the future, some have no time."""
        rng = self._rng("prediction", number)
        predicted, region = rng.choice(CLASSES), rng.choices(REGIONS, [5, 2, 1])[0]
        message: dict[str, Any] = {
            "model": MODEL,
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

    def true_class(self, item_id: str) -> str:
        """What an item is."""
        return self._rng("truth", item_id).choice(CLASSES)

    def labels(self, request: LabelRequest) -> list[Message]:
        """What people say to one attempt at a request, in order."""
        rng = self._rng("label", request.request_id, request.attempt)
        truth = self.true_class(request.item_id)
        wrong = next(name for name in CLASSES if name != truth)
        answer = self._label(request, "answer", truth, nonce=1)
        late = Message(answer.key, answer.value, LATE_ANSWER_SECONDS)
        stranger = request.model_copy(update={"request_id": f"unknown-{request.request_id}"})
        mistaken = self._label(request, "answer", wrong, nonce=1)
        cases: list[tuple[float, list[Message]]] = [
            (0.60, [answer]),
            (0.08, [answer, answer]),
            (0.06, [answer, self._label(request, "answer", wrong, nonce=2)]),
            (0.06, [mistaken, self._label(request, "correction", truth, nonce=2)]),
            (0.05, [answer, self._label(request, "retraction", None, nonce=2)]),
            (0.03, [self._label(request, "skip", None, nonce=1)]),
            (0.06, [late]),
            (0.02, [self._label(stranger, "answer", truth, nonce=1), answer]),
            (0.04, []),
        ]
        return rng.choices([said for _, said in cases], [often for often, _ in cases])[0]

    def _label(self, request: LabelRequest, kind: str, true_class: str | None, *, nonce: int) -> Message:
        label: dict[str, Any] = {
            "request_id": request.request_id,
            "model": request.model,
            "item_id": request.item_id,
            "kind": kind,
            "annotator": "somebody",
            "time": _iso(request.requested_at.timestamp() + 0.001 * nonce),
        }
        if true_class is not None:
            label["true_class"] = true_class
        return Message(request.item_id.encode(), json.dumps(label).encode())


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
