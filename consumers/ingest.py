"""What one model needs to take predictions in: its checks, its columns, its shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consumers.checking import Checked, Floats, Indices, PredictionChecks, payload_text
from consumers.formats.native import WirePrediction, decode_attributes
from service.cells import OTHER, CellSpace, Challenge, Combination, Ensemble, escape_reserved
from service.errors import BadMessage, FlushRefused
from service.pool_key import PoolKey
from service.shard import Candidates, Shard
from service.store.records import PoolRecord, encode_pool_record
from service.store.shards import DirectoryStore, ShardStore

UInt64s = npt.NDArray[np.uint64]

_NONE = -1

_REMEMBERED_BYTES = 4_000_000
"""Length of all texts of attributes whose combinations are remembered, about."""


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
    confirmed: int = 0
    """Combinations that its last flush found in Redis under their numbers."""
    stale: bool = False
    """Whether the numbers of its cells may mean something else in Redis by now."""


@dataclass(frozen=True)
class Resolved:
    """Checked predictions of one model, and what is known of their combinations; columns are [n].

    Attributes:
        checked: the predictions.
        attributes: JSON texts of their attributes, with votes behind where these tell groups apart.
        numbers: of their combinations; None where the text is new.
        new: combinations of texts that are new.
    """

    checked: Checked
    attributes: Sequence[bytes]
    numbers: Sequence[int | None]
    new: dict[bytes, Combination]


class ModelIngest:
    """What one model needs to take predictions in."""

    def __init__(
        self,
        space: CellSpace,
        *,
        directory: DirectoryStore,
        shards: ShardStore,
        pool_key: PoolKey,
        payload_bytes: int,
        keep_probabilities: bool,
    ) -> None:
        self.space = space
        self.directory = directory
        self.shards = shards
        self.owned: dict[int, _Owned] = {}
        self._pool_key = pool_key
        self._groups_of_cells: dict[str, tuple[list[str], Indices]] = {}
        self._known_cells = 0
        self.checks = PredictionChecks(space.classes, payload_bytes=payload_bytes)
        self._numbers: dict[bytes, int] = {}
        self._remembered_bytes = 0
        self._keep_probabilities = keep_probabilities

    @property
    def cell_count(self) -> int:
        """Cells of the model by now."""
        return len(self.directory.directory) * self.space.cells_per_combination

    def load(self, partition: int) -> int | None:
        """Own a partition from what Redis holds; its next offset, or None where nothing is stored."""
        before = self.directory.directory.combinations
        self.directory.load(limit=self.space.combination_limit)
        self._known_cells = 0
        if self.directory.directory.combinations[: len(before)] != before:
            self._mistrust()
        shard, started, drawn_seen = self.shards.load(partition, cell_count=self.cell_count)
        self.owned[partition] = _Owned(shard, started, drawn_seen, shard.next_offset)
        return shard.next_offset if started else None

    def _mistrust(self) -> None:
        self._forget_numbers()
        self._known_cells = 0
        for owned in self.owned.values():
            owned.stale = True

    def resolve(self, predictions: Sequence[WirePrediction]) -> Resolved:
        """Check predictions, and look up their combinations."""
        checked = self.checks.check_all(predictions)
        attributes = list(map(bytes, [p.attributes for p in predictions]))
        if self.space.voters is not None:
            attributes = self._with_votes(attributes, checked, self.space.voters[1])
        numbers = list(map(self._numbers.get, attributes))
        return Resolved(
            checked, attributes, numbers, self._new_combinations(attributes, numbers, checked.refused)
        )

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
                    new[text] = self.space.raw_combination(self._attributes_of(text))
                except BadMessage as error:
                    refused[row] = error
        return new

    def _attributes_of(self, text: bytes) -> dict[str, str]:
        """Attributes by name, and the pattern of votes if there is one.

        Raises:
            BadMessage: they are no attributes.
        """
        attributes, _, pattern = text.partition(_VOTES)
        told = _escaped(decode_attributes(attributes))
        return told if self.space.voters is None else told | {self.space.voters[0]: pattern.decode()}

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
        self, resolved: Resolved, rows: Indices, *, times: Floats, id_hashes: UInt64s
    ) -> Candidates:
        """Columns to be added to a shard; registers combinations of attribute values that are new.

        Args:
            resolved: predictions of this model [n].
            rows: which of them are added [r].
            times: when each of these was made [r], seconds since the epoch.
            id_hashes: SipHash-2-4 of their item ids [r].

        Raises:
            Unavailable: Redis cannot answer now; then nothing has changed.
        """
        checked = resolved.checked
        classes, scores = checked.classes[rows], checked.scores[rows]
        among = np.full(len(checked.predictions), _NONE, dtype=np.intp)
        among[rows] = np.arange(len(rows))
        spread = among[checked.spread]
        with_probabilities = self._keep_probabilities and bool((spread != _NONE).any())
        numbers = self._numbered(resolved)[rows]
        cells = self.space.cells(combinations=numbers, classes=classes, scores=scores)
        return Candidates(
            cells=cells,
            classes=classes,
            scores=scores,
            times=times,
            item_hashes=self._pool_key.item_hashes(id_hashes, times),
            groups={
                pool_id: (names, groups[cells]) for pool_id, (names, groups) in self._groups_by_pool().items()
            },
            record=self._encoder(checked, rows, times),
            probabilities=(spread[spread != _NONE], checked.probabilities[spread != _NONE])
            if with_probabilities
            else None,
        )

    def _groups_by_pool(self) -> dict[str, tuple[list[str], Indices]]:
        """By pool id: names of the grouping's groups, and the group of every cell [cells]."""
        if self._known_cells != self.cell_count:
            combinations = self.directory.directory.combinations
            self._groups_of_cells = {
                pool_id: self.space.groups(name, combinations)
                for name, pool_id in self.shards.pool_ids.items()
            }
            self._known_cells = self.cell_count
        return self._groups_of_cells

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
                    attributes=self._kept(_escaped(decode_attributes(p.attributes))),
                    payload=payload_text(p.payload),
                    payload_uri=p.payload_uri or "",
                    votes=p.votes or {},
                )
            )

        return record

    def _kept(self, attributes: dict[str, str]) -> dict[str, str]:
        """What an item keeps: attributes that groupings use, and others by name while they fit."""
        bounds = self.space.bounds
        folded = {n: v if len(v) <= bounds.attribute_length else OTHER for n, v in attributes.items()}
        used = set(self.space.attributes)
        kept = {name: value for name, value in folded.items() if name in used}
        room = bounds.further_attribute_bytes
        for name in sorted(folded.keys() - used):
            room -= len(name.encode()) + len(folded[name].encode())
            if room < 0:
                break
            kept[name] = folded[name]
        return kept

    def _numbered(self, resolved: Resolved) -> Indices:
        """Number of every prediction's combination [n]; 0 stands for that of a refused one."""
        if None not in resolved.numbers:
            return np.array(resolved.numbers, dtype=np.intp)
        found: dict[bytes, int] = {}
        for text, combination in resolved.new.items():
            number = self._number(combination)
            if number is None:
                # What is counted from here on is thrown away: every flush is refused until a reload.
                self._mistrust()
                return np.zeros(len(resolved.numbers), dtype=np.intp)
            found[text] = number
        told = zip(resolved.numbers, resolved.attributes, strict=True)
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


def _escaped(attributes: dict[str, str]) -> dict[str, str]:
    return {name: escape_reserved(value) for name, value in attributes.items()}
