"""Ingest of one model's predictions: validation, attribute values, columns for its shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from consumers.formats.columns import Coded, ModelColumns
from consumers.formats.native import AttributeDecoder, Values, WirePrediction
from consumers.item_attributes import ItemAttributes
from consumers.validation import Checked, PredictionChecks, payload_text
from service.domain.arrays import Floats, Indices, UInt64s
from service.domain.cells import MISSING, CellSpace, Challenge, Ensemble
from service.domain.errors import BadMessage
from service.domain.pending_joins import JoinColumns
from service.domain.pool_key import PoolKey
from service.domain.shard import Candidates, Shard
from service.domain.value_book import ValueBook
from service.store.records import PoolRecord, encode_pool_record, encode_waiting_fact
from service.store.shards import ShardStore

_NONE = -1

_CACHE_BYTES = 64_000_000
"""About how much memory the cache of attribute texts may take before it is cleared."""

_ENTRY_BYTES = 250
"""Overhead of one cached text, in dictionaries and columns."""

_SEPARATOR = b"\0"
"""Between the text of attributes, which cannot contain it, and the pattern of votes."""


@dataclass
class _Owned:
    """The shard of a partition that is assigned to this process.

    Attributes:
        applied: offset of the first record that the shard in memory does not contain.
    """

    shard: Shard
    applied: int


class ModelIngest:
    """Validates predictions of one model, and makes columns of them.

    Attributes:
        owned: the model's shards, by partition.
    """

    def __init__(
        self,
        space: CellSpace,
        *,
        shards: ShardStore,
        pool_key: PoolKey,
        payload_bytes: int,
        keep_probabilities: bool,
    ) -> None:
        self.space = space
        self.shards = shards
        self.owned: dict[int, _Owned] = {}
        self._pool_key = pool_key
        self.checks = PredictionChecks(space.classes, payload_bytes=payload_bytes)
        self._attributes = space.attributes
        self._item_attributes = ItemAttributes(space)
        self._vote_position = None if space.voters is None else self._attributes.index(space.voters[0])
        self._decoder = AttributeDecoder(
            [name for position, name in enumerate(self._attributes) if position != self._vote_position]
        )
        self._book = ValueBook(self._name_value, len(self._attributes))
        self._codes: dict[bytes, int] = {}
        self._cached_bytes = 0
        self._keep_probabilities = keep_probabilities

    def load(self, partition: int) -> int | None:
        """Load a partition's shard from Redis; the next offset to read, or None where nothing is stored."""
        shard = self.shards.load(partition)
        self.owned[partition] = _Owned(shard, shard.next_offset)
        return shard.next_offset if shard.is_stored else None

    def trim(self) -> None:
        """Clear the cache of attribute texts if it is too large; numbers from before mean nothing then."""
        if self._cached_bytes > _CACHE_BYTES:
            self._codes.clear()
            self._book.clear()
            self._cached_bytes = 0

    def resolve(self, predictions: Sequence[WirePrediction]) -> tuple[Checked, Indices]:
        """Validate predictions [n].

        Returns:
            Their columns, and the numbers of their attribute values in the value book [n, attributes]; any
            for refused ones.
        """
        if isinstance(predictions, ModelColumns):
            return self.checks.check_columns(predictions), self._number_columns(predictions)
        checked = self.checks.check_all(predictions)
        attributes = list(map(bytes, [p.attributes for p in predictions]))
        if self.space.voters is not None:
            attributes = self._with_votes(attributes, checked, self.space.voters[1])
        codes = np.fromiter(map(self._codes.get, attributes, repeat(_NONE)), np.intp, len(attributes))
        new = np.flatnonzero(codes == _NONE).tolist()
        if new:
            texts = [attributes[row] for row in new]
            bad = self._encode_new(list(dict.fromkeys(texts)))
            codes[new] = [self._codes.get(text, 0) for text in texts]
            for row, text in zip(new, texts, strict=True) if bad else ():
                if text in bad:
                    checked.refused.setdefault(row, bad[text])
        if not len(self._book):  # all are refused, and none has a code
            return checked, np.zeros((len(codes), len(self._attributes)), np.intp)
        return checked, self._book.values(codes)

    def _number_columns(self, columns: ModelColumns) -> Indices:
        entries, values = self._book.entries, np.empty((len(columns), len(self._attributes)), np.intp)
        missing = Coded.missing(len(columns))
        for position, attribute in enumerate(self._attributes):
            column = columns.attributes.get(attribute, missing)
            if position == self._vote_position:  # these predictions have no votes
                column = missing
            values[:, position] = self._book.encode(position, column.names)[column.codes]
            if (more := self._book.entries - entries) > 0:
                entries += more
                self._cached_bytes += more * _ENTRY_BYTES + sum(len(name or "") for name in column.names)
        return values

    def _encode_new(self, texts: Sequence[bytes]) -> dict[bytes, BadMessage]:
        """Give codes to texts that have none; those that are no valid attributes, and why."""
        bad: dict[bytes, BadMessage] = {}
        usable: dict[bytes, Values] = {}
        for text, values in zip(texts, self._decode(texts), strict=True):
            if isinstance(values, BadMessage):
                bad[text] = values
            else:
                usable[text] = values
        if not self._attributes:
            self._codes |= dict.fromkeys(usable, 0)
        elif usable:
            columns = list(zip(*usable.values(), strict=True))
            self._codes.update(zip(usable, self._book.add(columns), strict=True))
        self._cached_bytes += sum(map(len, texts)) + _ENTRY_BYTES * len(texts)
        return bad

    def _decode(self, texts: Sequence[bytes]) -> Sequence[Values | BadMessage]:
        """Attribute values of every text, with the pattern of votes among them; or why it is refused."""
        if self._vote_position is None:
            return self._decoder.values(texts)
        at = self._vote_position
        parts = [text.partition(_SEPARATOR) for text in texts]
        decoded = self._decoder.values([attributes for attributes, _, _ in parts])
        return [
            values if isinstance(values, BadMessage) else (*values[:at], pattern.decode(), *values[at:])
            for values, (_, _, pattern) in zip(decoded, parts, strict=True)
        ]

    def _name_value(self, position: int, value: str | None) -> str:
        """Name under which an attribute's value is counted."""
        if value is None:
            return MISSING
        return value if position == self._vote_position else self._item_attributes.bound(value)

    def _with_votes(
        self, attributes: Sequence[bytes], checked: Checked, voters: Ensemble | Challenge
    ) -> list[bytes]:
        """Attribute texts with the pattern of votes appended."""
        return [
            text + _SEPARATOR + voters.pattern(self.space.classes[index], p.votes or {}).encode()
            for text, p, index in zip(attributes, checked.predictions, checked.classes.tolist(), strict=True)
        ]

    def build_candidates(
        self,
        checked: Checked,
        values: Indices,
        rows: Indices,
        *,
        times: Floats,
        arrivals: Floats,
        id_hashes: UInt64s,
        now: float,
    ) -> Candidates:
        """Columns of accepted predictions, for a shard.

        Args:
            checked: predictions of this model [n].
            values: numbers of their attribute values [n, attributes].
            rows: which of them are accepted [r].
            times: when each of these was made [r], seconds since the epoch.
            arrivals: when the record of each arrived [r], seconds since the epoch.
            id_hashes: SipHash-2-4 of their item ids [r].
            now: seconds since the epoch.
        """
        classes, scores = checked.classes[rows], checked.scores[rows]
        probabilities = None
        if self._keep_probabilities:
            row_of = np.full(len(checked.predictions), _NONE, dtype=np.intp)
            row_of[rows] = np.arange(len(rows))
            with_probabilities = row_of[checked.with_probabilities]
            accepted = with_probabilities != _NONE
            if accepted.any():
                probabilities = with_probabilities[accepted], checked.probabilities[accepted]
        return Candidates(
            book=self._book,
            values=values[rows],
            classes=classes,
            bins=self.space.bins(scores),
            scores=scores,
            times=times,
            arrivals=arrivals,
            item_hashes=self._pool_key.item_hashes(id_hashes, times, arrivals),
            record=self._record_encoder(checked, rows, times),
            probabilities=probabilities,
            join=JoinColumns(
                self._pool_key.join_digests(id_hashes),
                self._fact_encoder(checked, rows, times, arrivals),
                since=now - self.shards.join_seconds,
            )
            if self.shards.joins
            else None,
        )

    def _record_encoder(self, checked: Checked, rows: Indices, times: Floats) -> Callable[[int], bytes]:
        """A function that encodes the pool record of one row, as few rows enter the pool."""

        def encode(at: int) -> bytes:
            row = int(rows[at])
            p = checked.predictions[row]
            return encode_pool_record(
                PoolRecord(
                    item_id=p.item_id,
                    predicted_class=self.space.classes[checked.classes[row]],
                    score=float(checked.scores[row]),
                    time=float(times[at]),
                    attributes=self._item_attributes.stored(bytes(p.attributes)),
                    payload=payload_text(p.payload),
                    payload_uri=p.payload_uri or "",
                    votes=p.votes or {},
                )
            )

        return encode

    def _fact_encoder(
        self, checked: Checked, rows: Indices, times: Floats, arrivals: Floats
    ) -> Callable[[int], bytes]:
        """A function that encodes the fact of one row, as only a sample waits for unrequested labels."""

        def encode(at: int) -> bytes:
            row = int(rows[at])
            p = checked.predictions[row]
            return encode_waiting_fact(
                item_id=p.item_id,
                predicted_class=self.space.classes[checked.classes[row]],
                score=float(checked.scores[row]),
                attributes=self._item_attributes.stored(bytes(p.attributes)),
                predicted_at=float(times[at]),
                arrived_at=float(arrivals[at]),
                votes=p.votes,
            )

        return encode

    def flush(self, partition: int, offset: int, *, newest_record: float, force: bool = False) -> None:
        """Write one partition's shard to Redis, if what is stored is behind the offset.

        Args:
            partition: whose shard.
            offset: of the first record that is not in the shard.
            newest_record: time of the newest record before the offset, seconds since the epoch.
            force: write even if it is not behind, to notice a Redis that has lost data.

        Raises:
            FlushRefused: the partition has another owner, or Redis has lost data.
            Unavailable: Redis does not answer.
        """
        shard = self.owned[partition].shard
        if shard.is_stored and shard.next_offset >= offset and not force:
            return
        # A shard that is ahead of the offset contains later records.
        shard.newest_record = max(shard.newest_record, newest_record)
        self.shards.flush(partition, shard, new_offset=max(offset, shard.next_offset))
