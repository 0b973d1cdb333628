"""What one model needs to take predictions in: its checks, its columns, its shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from consumers.formats.attributes import AttributeDecoder, Values
from consumers.formats.native import WirePrediction, decode_checked_attributes
from consumers.validation import Checked, PredictionChecks, payload_text
from service.domain.arrays import Floats, Indices, UInt64s
from service.domain.cells import MISSING, OTHER, CellSpace, Challenge, Ensemble, escape_reserved
from service.domain.errors import BadMessage
from service.domain.pool_key import PoolKey
from service.domain.shard import Candidates, Shard
from service.domain.value_book import ValueBook
from service.store.records import PoolRecord, encode_pool_record
from service.store.shards import ShardStore

_NONE = -1

_REMEMBERED_BYTES = 64_000_000
"""Memory of all texts of attributes whose values are remembered, about."""

_TEXT_BYTES = 250
"""What a remembered text takes beside its own length, in dictionaries and columns."""


_VOTES = b"\0"
"""Between the text of attributes, which holds no such byte, and the pattern of votes."""


@dataclass
class _Owned:
    """One partition of one model, as this process owns it."""

    shard: Shard
    started: bool
    drawn_seen: int
    applied: int
    """Offset of the first record that the shard in memory does not hold."""


@dataclass(frozen=True)
class Resolved:
    """Checked predictions of one model; columns are [n].

    Attributes:
        checked: the predictions.
        combinations: numbers of their attribute values in the book; 0 of those that are refused.
    """

    checked: Checked
    combinations: Indices


class ModelIngest:
    """What one model needs to take predictions in."""

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
        self._used = frozenset(space.attributes)
        self._longest = space.bounds.attribute_length
        self._vote = None if space.voters is None else self._attributes.index(space.voters[0])
        self._decoder = AttributeDecoder(
            [name for position, name in enumerate(self._attributes) if position != self._vote]
        )
        self._book = ValueBook(self._name_value, len(self._attributes))
        self._numbers: dict[bytes, int] = {}
        self._remembered_bytes = 0
        self._keep_probabilities = keep_probabilities

    def load(self, partition: int) -> int | None:
        """Own a partition from what Redis holds; its next offset, or None where nothing is stored."""
        shard, started, drawn_seen = self.shards.load(partition)
        self.owned[partition] = _Owned(shard, started, drawn_seen, shard.next_offset)
        return shard.next_offset if started else None

    def resolve(self, predictions: Sequence[WirePrediction]) -> Resolved:
        """Check predictions, and number their attribute values."""
        checked = self.checks.check_all(predictions)
        attributes = list(map(bytes, [p.attributes for p in predictions]))
        if self.space.voters is not None:
            attributes = self._with_votes(attributes, checked, self.space.voters[1])
        if self._remembered_bytes > _REMEMBERED_BYTES:
            self._numbers.clear()
            self._book.clear()
            self._remembered_bytes = 0
        numbers = np.fromiter(map(self._numbers.get, attributes, repeat(_NONE)), np.intp, len(attributes))
        new = np.flatnonzero(numbers == _NONE).tolist()
        if new:
            texts = [attributes[row] for row in new]
            bad = self._number_new(list(dict.fromkeys(texts)))
            numbers[new] = [self._numbers.get(text, 0) for text in texts]
            for row, text in zip(new, texts, strict=True) if bad else ():
                if text in bad:
                    checked.refused.setdefault(row, bad[text])
        return Resolved(checked, numbers)

    def _number_new(self, texts: Sequence[bytes]) -> dict[bytes, BadMessage]:
        """Number the values of texts that are new; those that are no attributes, and why."""
        decoded = self._decoded(texts)
        bad = {text: told for text, told in zip(texts, decoded, strict=True) if isinstance(told, BadMessage)}
        usable = [text for text in texts if text not in bad] if bad else texts
        if not self._attributes:
            self._numbers |= dict.fromkeys(usable, 0)
        elif usable:
            columns = list(zip(*[told for told in decoded if not isinstance(told, BadMessage)], strict=True))
            self._numbers.update(zip(usable, self._book.add(columns), strict=True))
        self._remembered_bytes += sum(map(len, texts)) + _TEXT_BYTES * len(texts)
        return bad

    def _decoded(self, texts: Sequence[bytes]) -> Sequence[Values | BadMessage]:
        """Attribute values of every text, the pattern of votes among them; or why there are none."""
        if self._vote is None:
            return self._decoder.values(texts)
        parts = [text.partition(_VOTES) for text in texts]
        decoded = self._decoder.values([attributes for attributes, _, _ in parts])
        return [
            told
            if isinstance(told, BadMessage)
            else (*told[: self._vote], pattern.decode(), *told[self._vote :])
            for told, (_, _, pattern) in zip(decoded, parts, strict=True)
        ]

    def _name_value(self, position: int, value: str | None) -> str:
        """Name under which a value is counted."""
        if value is None:
            return MISSING
        return value if position == self._vote else self._bounded(value)

    def _bounded(self, value: str) -> str:
        """An attribute value as it is kept: never a reserved one, and folded if it is too long."""
        escaped = escape_reserved(value)
        return escaped if len(escaped) <= self._longest else OTHER

    def _with_votes(
        self, attributes: Sequence[bytes], checked: Checked, voters: Ensemble | Challenge
    ) -> list[bytes]:
        """The texts of the attributes, with the pattern of votes behind each."""
        told = zip(attributes, checked.predictions, checked.classes.tolist(), strict=True)
        return [
            text + _VOTES + voters.pattern(self.space.classes[index], p.votes or {}).encode()
            for text, p, index in told
        ]

    def candidates(
        self, resolved: Resolved, rows: Indices, *, times: Floats, arrivals: Floats, id_hashes: UInt64s
    ) -> Candidates:
        """Columns to be added to a shard.

        Args:
            resolved: predictions of this model [n].
            rows: which of them are added [r].
            times: when each of these was made [r], seconds since the epoch.
            arrivals: when the record of each arrived [r], seconds since the epoch.
            id_hashes: SipHash-2-4 of their item ids [r].
        """
        checked = resolved.checked
        classes, scores = checked.classes[rows], checked.scores[rows]
        among = np.full(len(checked.predictions), _NONE, dtype=np.intp)
        among[rows] = np.arange(len(rows))
        spread = among[checked.spread]
        with_probabilities = self._keep_probabilities and bool((spread != _NONE).any())
        return Candidates(
            book=self._book,
            combinations=resolved.combinations[rows],
            classes=classes,
            bins=self.space.bins(scores),
            scores=scores,
            times=times,
            arrivals=arrivals,
            item_hashes=self._pool_key.item_hashes(id_hashes, times, arrivals),
            record=self._encoder(checked, rows, times),
            probabilities=(spread[spread != _NONE], checked.probabilities[spread != _NONE])
            if with_probabilities
            else None,
        )

    def _encoder(self, checked: Checked, rows: Indices, times: Floats) -> Callable[[int], bytes]:
        """Encodes the pool record of one row; few of them enter the pool."""

        def record(at: int) -> bytes:
            row = int(rows[at])
            p = checked.predictions[row]
            return encode_pool_record(
                PoolRecord(
                    item_id=p.item_id,
                    predicted_class=self.space.classes[checked.classes[row]],
                    score=float(checked.scores[row]),
                    time=float(times[at]),
                    attributes=self._kept(bytes(p.attributes)),
                    payload=payload_text(p.payload),
                    payload_uri=p.payload_uri or "",
                    votes=p.votes or {},
                )
            )

        return record

    def _kept(self, text: bytes) -> dict[str, str]:
        """What an item keeps: attributes that groupings use, and others by name while they fit."""
        attributes = decode_checked_attributes(text) if text else {}
        # Reserved values have two underscores, which JSON may also write as escapes.
        is_plain = (
            b"__" not in text
            and b"\\" not in text
            and (len(text) <= self._longest or max(map(len, attributes.values())) <= self._longest)
        )
        folded = attributes if is_plain else {n: self._bounded(value) for n, value in attributes.items()}
        if self._used.issuperset(folded):
            return folded
        kept = {name: value for name, value in folded.items() if name in self._used}
        room = self.space.bounds.further_attribute_bytes
        for name in sorted(folded.keys() - self._used):
            room -= len(name.encode()) + len(folded[name].encode())
            if room < 0:
                break
            kept[name] = folded[name]
        return kept

    def flush(self, partition: int, offset: int, *, newest_record: float, anew: bool = False) -> None:
        """Write one partition's shard back, if it is behind the offset.

        Args:
            partition: of the predictions topic.
            offset: of the first record that is not in the shard.
            newest_record: time of the newest record before the offset, seconds since the epoch.
            anew: even if it is not behind, to see that Redis still holds it.

        Raises:
            FlushRefused: the partition has another owner, or Redis lost what it held.
            Unavailable: Redis cannot answer now.
        """
        owned = self.owned[partition]
        if owned.started and owned.shard.next_offset >= offset and not anew:
            return
        # A shard that is ahead of the offset has seen later records.
        owned.shard.newest_record = max(owned.shard.newest_record, newest_record)
        owned.drawn_seen = self.shards.flush(
            partition,
            owned.shard,
            new_offset=max(offset, owned.shard.next_offset),
            drawn_seen=owned.drawn_seen,
            started=owned.started,
        )
        owned.started = True
