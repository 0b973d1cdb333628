"""What a seed sends: predictions of two models, in disorder, and what people say to requests.

Everything follows from the seed and an item's number, so that it can be asked for again at any time. Records
are of all formats.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from record_formats import OF_ONE_KIND, ONE, SEVERAL, Row, Writing, Written

from service.domain.messages import LabelRequest

T = TypeVar("T")
Headers = tuple[tuple[str, bytes], ...]

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

_VERSION_ITEMS = 400
"""Predictions after which producers use new schemas: consumers ask the registry again and again."""

_LABEL_VERSIONS = 16
"""Of the schemas of labels: items have very high numbers, too."""

_MOST_ROWS = 6
"""Predictions that may join another one in its record."""

_SEVERAL, _TWICE, _DAMAGED, _SPOILT = 0.2, 0.05, 0.03, 0.03
"""Shares of records: with several predictions, sent twice, not usable, with a bad prediction."""


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
        headers: of the record.
        wait_seconds: how long to wait before it is sent, from when it was thought of.
    """

    key: bytes
    value: bytes
    headers: Headers = ()
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
        self._plain: dict[tuple[bytes, Headers], bytes | None] = {}

    def plain(self, record: Any) -> bytes | None:
        """Native JSON of the messages in a record that this workload has made; None if none can be used."""
        return self._plain[record.value, tuple(record.headers)]

    def _message(self, key: str, made: Written) -> Message:
        self._plain[made.value, made.headers] = made.plain
        return Message(key.encode(), made.value, made.headers)

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
        waiting = [self.prediction(number) for number in range(start, start + count)]
        rng.shuffle(waiting)
        while waiting:
            rows = [waiting.pop()]
            writing = Writing("predictions", start // _VERSION_ITEMS, rng, is_damaged=rng.random() < _DAMAGED)
            if rng.random() < _SEVERAL:
                write = _choose(rng, SEVERAL)
                rows += _taken(waiting, rows[0] if write in OF_ONE_KIND else None, rng.randint(1, _MOST_ROWS))
                _spoil(rng, rows)
                made = write(rows, writing)
            else:
                _spoil(rng, rows, {"model": "unknown"})
                made = _choose(rng, ONE)(rows[0], writing)
            message = self._message(rows[0]["item_id"], made)
            yield message
            have_times = all("time" in row for row in rows)  # else the two are of different times
            if have_times and rng.random() < _TWICE:
                yield message

    def closing(self, partition: int) -> Message:
        """The last record of a partition, which has a prediction of each model.

        A consumer stores the offsets of models without new predictions only every few seconds.
        """
        numbers = enumerate((MODEL, PANEL), start=_CLOSING + 2 * partition)
        last = [self.prediction(number, model) for number, model in numbers]
        value = json.dumps(last).encode()
        return self._message("closing", Written(value, plain=value))

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
        unreadable = self._label(request, "answer", truth, nonce=1, annotator=by, is_damaged=True)
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
            (0.03, [unreadable, answer]),
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
        self,
        request: LabelRequest,
        kind: str,
        true_class: str | None,
        *,
        nonce: int,
        annotator: str,
        is_damaged: bool = False,
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
        rng = self._rng("format", is_damaged, *label.values())
        version = int(request.item_id.rpartition("-")[2]) // _VERSION_ITEMS % _LABEL_VERSIONS
        writing = Writing("labels", version, rng, is_damaged=is_damaged)
        return self._message(request.item_id, _choose(rng, ONE)(label, writing))


def _choose(rng: random.Random, weighted: Sequence[tuple[float, T]]) -> T:
    return rng.choices([one for _, one in weighted], [often for often, _ in weighted])[0]


def _taken(waiting: list[Row], like: Row | None, most: int) -> list[Row]:
    """Some of the rows that wait, which wait no longer; with a model, and of fields, that one row has."""
    fit = [
        row for row in waiting if like is None or (row["model"], row.keys()) == (like["model"], like.keys())
    ]
    for row in fit[:most]:
        waiting.remove(row)
    return fit[:most]


def _spoil(rng: random.Random, rows: list[Row], *wrong: Row) -> None:
    """Now and then make one row bad: its item, its class or probabilities, or in another way."""
    unknown = {"predicted_class": "fox"} if "score" in rows[-1] else {"probabilities": [0.9, 0.9, 0.9]}
    if rng.random() < _SPOILT:
        rows[-1] = rows[-1] | rng.choice([{"item_id": "x" * 300}, unknown, *wrong])


def _later(message: Message, seconds: float) -> Message:
    return replace(message, wait_seconds=message.wait_seconds + seconds)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
