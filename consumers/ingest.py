"""What one model needs to take predictions in: its checks, its columns, its shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from consumers.formats.native import WirePrediction
from service.cells import OTHER, CellSpace, Combination
from service.contract import PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE
from service.errors import BadMessage, FlushRefused
from service.shard import Candidates, Shard
from service.store.records import PoolRecord, encode_pool_record
from service.store.shards import DirectoryStore, ShardStore

_EMPTY_PAYLOADS = (b"", b"null")


@dataclass
class _Owned:
    """One partition of one model, as this process owns it."""

    shard: Shard
    started: bool
    drawn_seen: int
    applied: int
    """Offset of the first record that the shard in memory does not hold."""
    confirmed: int = 0
    """Combinations that its last flush found in Redis under their numbers."""
    stale: bool = False
    """Whether the numbers of its cells may mean something else in Redis by now."""


@dataclass
class Rows:
    """Checked predictions of one batch for one model, as lists to become columns."""

    offsets: list[int] = field(default_factory=list)
    predictions: list[WirePrediction] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


class ModelIngest:
    """What one model needs to take predictions in."""

    def __init__(
        self,
        space: CellSpace,
        *,
        directory: DirectoryStore,
        shards: ShardStore,
        payload_bytes: int,
        keep_probabilities: bool,
    ) -> None:
        self.space = space
        self.directory = directory
        self.shards = shards
        self.owned: dict[int, _Owned] = {}
        self._class_index = {name: i for i, name in enumerate(space.classes)}
        self._payload_bytes = payload_bytes
        self._keep_probabilities = keep_probabilities

    @property
    def cell_count(self) -> int:
        """Cells of the model by now."""
        return len(self.directory.directory) * self.space.cells_per_combination

    def load(self, partition: int) -> int | None:
        """Own a partition from what Redis holds; its next offset, or None where nothing is stored."""
        before = self.directory.directory.combinations
        self.directory.load(limit=self.space.combination_limit)
        if self.directory.directory.combinations[: len(before)] != before:
            self._mistrust()
        shard, started, drawn_seen = self.shards.load(partition, cell_count=self.cell_count)
        self.owned[partition] = _Owned(shard, started, drawn_seen, shard.next_offset)
        return shard.next_offset if started else None

    def _mistrust(self) -> None:
        for owned in self.owned.values():
            owned.stale = True

    def check(self, prediction: WirePrediction) -> tuple[int, float]:
        """Index of the predicted class, and the clipped score.

        Raises:
            BadMessage: the prediction cannot be one of this model.
        """
        index, score = self._class_and_score(prediction)
        if not -SCORE_TOLERANCE <= score <= 1 + SCORE_TOLERANCE:
            raise BadMessage("invalid_score", "the score must lie in [0, 1]")
        if prediction.votes and not self._class_index.keys() >= set(prediction.votes.values()):
            raise BadMessage("unknown_class", "a vote is not in the model's label set")
        if len(prediction.payload) > self._payload_bytes:
            raise BadMessage("payload_too_large", f"the payload is over {self._payload_bytes} bytes")
        if prediction.payload_uri is not None and _payload_text(prediction.payload):
            raise BadMessage("invalid_field", "give payload or payload_uri, not both")
        return index, min(max(score, 0.0), 1.0)

    def _class_and_score(self, prediction: WirePrediction) -> tuple[int, float]:
        probabilities = prediction.probabilities
        if probabilities is None:
            if prediction.predicted_class is None or prediction.score is None:
                raise BadMessage("missing_field", "give predicted_class and score, or probabilities")
            return self._index_of(prediction.predicted_class), prediction.score
        self._check_probabilities(probabilities)
        index = (
            probabilities.index(max(probabilities))
            if prediction.predicted_class is None
            else self._index_of(prediction.predicted_class)
        )
        return index, probabilities[index] if prediction.score is None else prediction.score

    def _index_of(self, name: str) -> int:
        if name not in self._class_index:
            raise BadMessage("unknown_class", "predicted_class is not in the model's label set")
        return self._class_index[name]

    def _check_probabilities(self, probabilities: list[float]) -> None:
        if len(probabilities) != len(self.space.classes):
            raise BadMessage(
                "invalid_probabilities",
                f"{len(probabilities)} probabilities for {len(self.space.classes)} classes",
            )
        if min(probabilities) < -SCORE_TOLERANCE or max(probabilities) > 1 + SCORE_TOLERANCE:
            raise BadMessage("invalid_probabilities", "a probability lies outside [0, 1]")
        if abs(sum(min(max(p, 0.0), 1.0) for p in probabilities) - 1) > PROBABILITY_SUM_TOLERANCE:
            raise BadMessage("invalid_probabilities", "probabilities must sum to 1")

    def candidates(self, rows: Rows, shard: Shard) -> Candidates:
        """Columns of checked predictions; registers combinations of attribute values that are new."""
        combinations = self._combinations(
            [self.space.raw_combination(p.attributes) for p in rows.predictions]
        )
        classes = np.array(rows.classes, dtype=np.intp)
        scores = np.array(rows.scores)
        predictions, longest = rows.predictions, self.space.bounds.attribute_length

        def record(row: int) -> bytes:
            p = predictions[row]
            return encode_pool_record(
                PoolRecord(
                    item_id=p.item_id,
                    predicted_class=self.space.classes[rows.classes[row]],
                    score=rows.scores[row],
                    time=rows.times[row],
                    attributes={n: v if len(v) <= longest else OTHER for n, v in p.attributes.items()},
                    payload=_payload_text(p.payload),
                    payload_uri=p.payload_uri or "",
                    votes=p.votes or {},
                )
            )

        with_probabilities = (
            [i for i, p in enumerate(predictions) if p.probabilities is not None]
            if self._keep_probabilities
            else []
        )
        return Candidates(
            cells=self.space.cells(combinations=combinations, classes=classes, scores=scores),
            classes=classes,
            scores=scores,
            times=np.array(rows.times),
            item_hashes=shard.hash_items([p.item_id.encode() for p in predictions]),
            record=record,
            probabilities=(
                np.array(with_probabilities, dtype=np.intp),
                np.clip(np.array([predictions[i].probabilities for i in with_probabilities], float), 0, 1),
            )
            if with_probabilities
            else None,
        )

    def _combinations(self, raw: Sequence[Combination]) -> Any:
        directory = self.directory.directory
        numbers: dict[Combination, int] = {}
        for combination in dict.fromkeys(raw):
            while (number := directory.number(folded := directory.fold(combination))) is None:
                if not self.directory.register(folded, limit=self.space.combination_limit):
                    # What is counted from here on is thrown away: every flush is refused until a reload.
                    self._mistrust()
                    return np.zeros(len(raw), dtype=np.intp)
            numbers[combination] = number
        return np.array([numbers[combination] for combination in raw], dtype=np.intp)

    def flush(self, partition: int, offset: int) -> None:
        """Write one partition's shard back, if it is behind the offset.

        Raises:
            FlushRefused: the partition has another owner, or Redis lost what it held.
            Unavailable: Redis cannot answer now.
        """
        owned = self.owned[partition]
        if owned.stale:
            raise FlushRefused("Redis has lost combinations of attribute values that this shard relies on")
        if owned.started and owned.shard.next_offset >= offset:
            return
        combinations = self.directory.directory.combinations
        unconfirmed = list(enumerate(combinations))[owned.confirmed :]
        owned.drawn_seen = self.shards.flush(
            partition,
            owned.shard,
            new_offset=offset,
            drawn_seen=owned.drawn_seen,
            started=owned.started,
            combinations=unconfirmed,
        )
        owned.started = True
        owned.confirmed = len(combinations)


def _payload_text(value: msgspec.Raw) -> bytes:
    text = bytes(value)
    return b"" if text in _EMPTY_PAYLOADS else text
