"""Labels that nobody requested: from the wire to what the store joins with predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from consumers.formats.native import WireLabel
from consumers.item_attributes import ItemAttributes
from consumers.prediction_times import FUTURE_SECONDS
from service.domain.cells import CellSpace
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.store.joins import JoinStore, OwnPrediction, UnrequestedLabel
from service.store.records import encode_waiting_fact


@dataclass(frozen=True)
class ReceivedLabel:
    """A label without a request.

    Attributes:
        vendor: who signed it; empty if no vendors are configured.
        time: when it was given, seconds since the epoch; the latest label of an item counts. Unless it is
            in the future, it is the same whenever the label is read.
    """

    label: WireLabel
    vendor: str
    time: float

    @classmethod
    def of(cls, label: WireLabel, vendor: str, record: Any, *, claimed: float | None, now: float) -> Self:
        """From its record, whose time bounds a time that the label claims."""
        arrived = record.timestamp / 1000 if record.timestamp >= 0 else None
        time = arrived if claimed is None else claimed
        if arrived is not None and time is not None:
            time = min(time, arrived + FUTURE_SECONDS)
        # A record's own time may be wrong, too.
        return cls(label, vendor, now if time is None else min(max(time, 0.0), now + FUTURE_SECONDS))


class UnrequestedJoins:
    """Joins the unrequested labels of one model.

    Args:
        store: of the model.
        space: of the model.
        model: its name.
        hash_key: of the pools.
        sampling_rate: the lowest probability that a label may state, where items are a random sample.
    """

    def __init__(
        self,
        store: JoinStore,
        space: CellSpace,
        *,
        model: str,
        hash_key: bytes,
        sampling_rate: float | None,
    ) -> None:
        self._store = store
        self._attributes = ItemAttributes(space)
        self._hash_key = hash_key
        self._pool_key = PoolKey(hash_key, model)
        self._sampling_rate = sampling_rate

    def apply(self, partition: int, received: Sequence[ReceivedLabel], *, now: float) -> Counter[str]:
        """Join labels; how often each result came, by `JoinStatus`.

        Raises:
            Unavailable: Redis cannot answer now; joining the same labels again is harmless.
        """
        hashes = siphash24([one.label.item_id.encode() for one in received], self._hash_key)
        digests = self._pool_key.join_digests(hashes).tolist()
        positions = self._pool_key.sample_positions(hashes).tolist()
        labels = [
            self._event(one, digest, now)
            for one, digest, position in zip(received, digests, positions, strict=True)
            if position < self._share(one.label)
        ]
        done = self._store.apply(partition, labels, now=now)
        counts = Counter[str](done.statuses)
        counts["not_sampled"] += len(received) - len(labels)
        counts["no_prediction"] += done.displaced
        return counts

    def _share(self, label: WireLabel) -> float:
        """Share of the items with this label's probability that makes all labels an even sample of traffic.

        Without a probability, as in retractions, all of them: only an item in the sample has a label.
        """
        if self._sampling_rate is None or label.probability is None:
            return 1.0
        return self._sampling_rate / label.probability

    def _event(self, one: ReceivedLabel, digest: int, now: float) -> UnrequestedLabel:
        label, own = one.label, None
        if (prediction := label.prediction) is not None:
            predicted_at = min(max(prediction.time.timestamp(), 0.0), now)
            fact = encode_waiting_fact(
                item_id=label.item_id,
                predicted_class=prediction.predicted_class,
                score=float(np.clip(prediction.score, 0.0, 1.0)),
                attributes=self._attributes.stored(bytes(prediction.attributes)),
                predicted_at=predicted_at,
                arrived_at=predicted_at,
            )
            own = OwnPrediction(predicted_at, fact)
        return UnrequestedLabel(
            digest,
            label.true_class or "",
            time=one.time,
            given_at=min(one.time, now),
            annotator=label.annotator or "",
            vendor=one.vendor,
            own=own,
        )
