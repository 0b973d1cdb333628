"""What one model needs to take predictions in: its checks, its columns, its shards.

Predictions are looked at as columns, many at a time. What the columns do not show to be in order is looked at
by itself: `ModelIngest.check` alone refuses, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from pydantic_core import from_json

from consumers.formats.native import NOTHING, WirePrediction, decode_attributes
from service.cells import OTHER, CellSpace, Combination
from service.contract import PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE
from service.errors import BadMessage, FlushRefused
from service.shard import Candidates, Shard
from service.store.records import PoolRecord, encode_pool_record
from service.store.shards import DirectoryStore, ShardStore

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
UInt64s = npt.NDArray[np.uint64]

_EMPTY_PAYLOADS = (b"", b"null")

_PLAIN_PAYLOAD_BYTES = 4_000
_PLAIN_PAYLOAD_PARTS = 100
"""A payload that is longer, or has more arrays and objects, may hold what few readers of JSON can take."""
_UNKNOWN = -1

_REMEMBERED_BYTES = 4_000_000
"""Length of all texts of attributes whose combinations are remembered, about."""


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


@dataclass(frozen=True)
class Checked:
    """Predictions of one model as columns [n]; those that are refused are still among them.

    Attributes:
        predictions: as they were parsed.
        classes: index of the predicted class.
        scores: in [0, 1].
        attributes: their JSON texts.
        numbers: of their combinations; None where the text is new.
        new: combinations of texts that are new.
        spread: which predictions carry class probabilities [m].
        probabilities: these, in [0, 1], [m, classes].
        refused: which predictions are refused, and why.
    """

    predictions: Sequence[WirePrediction]
    classes: Indices
    scores: Floats
    attributes: Sequence[bytes]
    numbers: Sequence[int | None]
    new: dict[bytes, Combination]
    spread: Indices
    probabilities: Floats
    refused: dict[int, BadMessage]


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
        self._class_index: dict[str | None, int] = {name: i for i, name in enumerate(space.classes)}
        self._numbers: dict[bytes, int] = {}
        self._remembered_bytes = 0
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
        self._forget_numbers()
        for owned in self.owned.values():
            owned.stale = True

    def check_all(self, predictions: Sequence[WirePrediction]) -> Checked:
        """Predictions as columns, with those that are refused and why."""
        class_index = self._class_index
        classes = np.array([class_index.get(p.predicted_class, _UNKNOWN) for p in predictions], dtype=np.intp)
        scores = np.array([p.score for p in predictions], dtype=np.float64)
        spread, probabilities, odd = self._spread(predictions, classes, scores)
        in_order = (classes != _UNKNOWN) & (scores >= -SCORE_TOLERANCE) & (scores <= 1 + SCORE_TOLERANCE)
        longest = self._payload_bytes
        odd += [
            row
            for row, p in enumerate(predictions)
            if p.votes is not None
            or (p.payload is not NOTHING and (p.payload_uri is not None or not _is_plain(p.payload, longest)))
        ]
        in_order[odd] = False
        refused: dict[int, BadMessage] = {}
        for row in np.flatnonzero(~in_order).tolist():
            try:
                classes[row], scores[row] = self.check(predictions[row])
            except BadMessage as error:
                refused[row] = error
        attributes = list(map(bytes, [p.attributes for p in predictions]))
        numbers = list(map(self._numbers.get, attributes))
        return Checked(
            predictions=predictions,
            classes=classes,
            scores=scores.clip(0.0, 1.0),
            attributes=attributes,
            numbers=numbers,
            new=self._new_combinations(attributes, numbers, refused),
            spread=spread,
            probabilities=probabilities,
            refused=refused,
        )

    def _spread(
        self, predictions: Sequence[WirePrediction], classes: Indices, scores: Floats
    ) -> tuple[Indices, Floats, list[int]]:
        """Class probabilities as a matrix; classes and scores that are not given are taken from them.

        Returns:
            Which predictions carry as many as there are classes; these, in [0, 1]; and which predictions have
            some that may not be in order.
        """
        size = len(self.space.classes)
        told_by_all = [p.probabilities for p in predictions]
        if told_by_all.count(None) == len(predictions):
            return np.empty(0, np.intp), np.empty((0, size)), []
        given = [(row, values) for row, values in enumerate(told_by_all) if values is not None]
        fitting = [(row, values) for row, values in given if len(values) == size]
        rows = np.array([row for row, _ in fitting], dtype=np.intp)
        told = np.array([values for _, values in fitting], dtype=np.float64).reshape(len(rows), size)
        unnamed = np.array([predictions[row].predicted_class is None for row, _ in fitting], dtype=np.bool_)
        classes[rows[unnamed]] = told[unnamed].argmax(axis=1)
        unscored = np.isnan(scores[rows])
        scores[rows[unscored]] = told[unscored, classes[rows[unscored]]]
        probabilities = told.clip(0.0, 1.0)
        in_order = (
            (told.min(axis=1) >= -SCORE_TOLERANCE)
            & (told.max(axis=1) <= 1 + SCORE_TOLERANCE)
            & (np.abs(probabilities.sum(axis=1) - 1) <= PROBABILITY_SUM_TOLERANCE)
        )
        odd = [*(row for row, values in given if len(values) != size), *rows[~in_order].tolist()]
        return rows, probabilities, odd

    def _new_combinations(
        self, attributes: Sequence[bytes], numbers: Sequence[int | None], refused: dict[int, BadMessage]
    ) -> dict[bytes, Combination]:
        """Combinations of the texts that have no number yet; texts that are no attributes are refused."""
        if None not in numbers:
            return {}
        new: dict[bytes, Combination] = {}
        for row, (text, number) in enumerate(zip(attributes, numbers, strict=True)):
            if number is None and text not in new and row not in refused:
                try:
                    new[text] = self.space.raw_combination(decode_attributes(text))
                except BadMessage as error:
                    refused[row] = error
        return new

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
        if not _is_plain(prediction.payload, self._payload_bytes) and not _is_readable(prediction.payload):
            raise BadMessage("invalid_field", "the payload is nested too deeply, or has a number too long")
        decode_attributes(prediction.attributes)
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

    def candidates(self, checked: Checked, rows: Indices, *, times: Floats, hashes: UInt64s) -> Candidates:
        """Columns to be added to a shard; registers combinations of attribute values that are new.

        Args:
            checked: predictions of this model [n].
            rows: which of them are added [r].
            times: when each of these was made [r], seconds since the epoch.
            hashes: of their item ids [r].

        Raises:
            Unavailable: Redis cannot answer now; then nothing has changed.
        """
        classes, scores = checked.classes[rows], checked.scores[rows]
        among = np.full(len(checked.predictions), _UNKNOWN, dtype=np.intp)
        among[rows] = np.arange(len(rows))
        spread = among[checked.spread]
        with_probabilities = self._keep_probabilities and bool((spread != _UNKNOWN).any())
        return Candidates(
            cells=self.space.cells(
                combinations=self._numbered(checked)[rows], classes=classes, scores=scores
            ),
            classes=classes,
            scores=scores,
            times=times,
            item_hashes=hashes,
            record=self._encoder(checked, rows, times),
            probabilities=(spread[spread != _UNKNOWN], checked.probabilities[spread != _UNKNOWN])
            if with_probabilities
            else None,
        )

    def _encoder(self, checked: Checked, rows: Indices, times: Floats) -> Callable[[int], bytes]:
        """Encodes the pool record of one row; few of them enter the pool."""
        longest = self.space.bounds.attribute_length

        def record(at: int) -> bytes:
            row = int(rows[at])
            p = checked.predictions[row]
            attributes = decode_attributes(p.attributes)
            return encode_pool_record(
                PoolRecord(
                    item_id=p.item_id,
                    predicted_class=self.space.classes[checked.classes[row]],
                    score=float(checked.scores[row]),
                    time=float(times[at]),
                    attributes={n: v if len(v) <= longest else OTHER for n, v in attributes.items()},
                    payload=_payload_text(p.payload),
                    payload_uri=p.payload_uri or "",
                    votes=p.votes or {},
                )
            )

        return record

    def _numbered(self, checked: Checked) -> Indices:
        """Number of every prediction's combination [n]; 0 stands for that of a refused one."""
        if None not in checked.numbers:
            return np.array(checked.numbers, dtype=np.intp)
        found: dict[bytes, int] = {}
        for text, combination in checked.new.items():
            number = self._number(combination)
            if number is None:
                # What is counted from here on is thrown away: every flush is refused until a reload.
                self._mistrust()
                return np.zeros(len(checked.numbers), dtype=np.intp)
            found[text] = number
        told = zip(checked.numbers, checked.attributes, strict=True)
        numbers = [found.get(text, 0) if number is None else number for number, text in told]
        self._remember_numbers(found)
        return np.array(numbers, dtype=np.intp)

    def _number(self, combination: Combination) -> int | None:
        """Number of a combination, registered if need be; None if Redis has lost what this process knows."""
        directory = self.directory.directory
        while (number := directory.number(folded := directory.fold(combination))) is None:
            if not self.directory.register(folded, limit=self.space.combination_limit):
                return None
        return number

    def _remember_numbers(self, found: dict[bytes, int]) -> None:
        if self._remembered_bytes > _REMEMBERED_BYTES:
            self._forget_numbers()
        self._numbers.update(found)
        self._remembered_bytes += sum(map(len, found))

    def _forget_numbers(self) -> None:
        self._numbers.clear()
        self._remembered_bytes = 0

    def flush(self, partition: int, offset: int, *, anew: bool = False) -> None:
        """Write one partition's shard back, if it is behind the offset.

        Args:
            partition: of the predictions topic.
            offset: of the first record that is not in the shard.
            anew: even if it is not behind, to see that Redis still holds it.

        Raises:
            FlushRefused: the partition has another owner, or Redis lost what it held.
            Unavailable: Redis cannot answer now.
        """
        owned = self.owned[partition]
        if owned.stale:
            raise FlushRefused("Redis has lost combinations of attribute values that this shard relies on")
        if owned.started and owned.shard.next_offset >= offset and not anew:
            return
        combinations = self.directory.directory.combinations
        unconfirmed = list(enumerate(combinations))[owned.confirmed :]
        owned.drawn_seen = self.shards.flush(
            partition,
            owned.shard,
            new_offset=max(offset, owned.shard.next_offset),
            drawn_seen=owned.drawn_seen,
            started=owned.started,
            combinations=unconfirmed,
        )
        owned.started = True
        owned.confirmed = len(combinations)


def _is_plain(payload: msgspec.Raw, longest: int) -> bool:
    text = bytes(payload)
    return (
        len(text) <= min(longest, _PLAIN_PAYLOAD_BYTES)
        and text.count(b"[") + text.count(b"{") <= _PLAIN_PAYLOAD_PARTS
    )


def _is_readable(payload: msgspec.Raw) -> bool:
    """Whether the contract's own reader takes it, as a labeller's may."""
    try:
        from_json(bytes(payload))
    except ValueError:
        return False
    return True


def _payload_text(value: msgspec.Raw) -> bytes:
    text = bytes(value)
    return b"" if text in _EMPTY_PAYLOADS else text
