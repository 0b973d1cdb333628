"""Predictions that wait for unrequested labels, and these labels: what the tests of joins share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from store_site import HASH_KEY, NOW, Record, Site, message, page, record

from service.app.wiring import cohort_store
from service.domain.pool_key import PoolKey
from service.domain.siphash import siphash24
from service.store.cohorts import Cohort, CohortStore, JoinSummary
from service.store.connection import Connection
from service.store.outcome_entries import OutcomeEntry

HOUR, DAY = 3_600.0, 86_400.0
BEGIN = NOW - NOW % HOUR  # of a cohort
CLOSED_AT = BEGIN + 2 * HOUR  # the first moment at which the cohort of BEGIN may close
CENSUS = {"items": "census"}
SAMPLED = {"items": "sampled", "sampling_rate": 0.1}
UNKNOWN = {"items": "unknown"}


class JoinSite(Site):
    """A deployment with one model `m`, whose labels come without a request."""

    def __init__(
        self,
        connection: Connection,
        rule: Mapping[str, Any] = CENSUS,
        *,
        vendors: Mapping[str, Any] | None = None,
        **bounds: Any,
    ) -> None:
        model = {"classes": ["cat", "dog"], "score_bins": 1, "unrequested_labels": dict(rule)}
        super().__init__(connection, {"m": model}, bounds={"join_days": 10, **bounds}, vendors=vendors)
        self._predictions = self.prediction_step()
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._labels = self.label_step()
        self._assigned: set[tuple[str, int]] = set()

    @property
    def cohorts(self) -> CohortStore:
        found = cohort_store(self.settings, self.connection, "m")
        assert found is not None
        return found

    def predict(
        self,
        items: Iterable[Any],
        *,
        at: float = BEGIN + 60,
        partition: int = 0,
        flush: bool = True,
        **fields: Any,
    ) -> None:
        """Predictions whose records arrive at a time, one record each."""
        if ("p", partition) not in self._assigned:
            self._assigned.add(("p", partition))
            self._predictions.assign(partition, 0)
        records = [self._record("p", partition, message(item, **fields), at) for item in items]
        self._predictions.process(partition, records, at)
        if flush:
            self._predictions.flush(partition, at)

    def flush(self, partition: int, *, at: float) -> None:
        """A flush of an idle partition."""
        self._predictions.flush(partition, at)

    def label(
        self,
        item: Any,
        true_class: str | None = "cat",
        *,
        at: float = BEGIN + 120,
        partition: int = 0,
        time: float | None = None,
        **fields: Any,
    ) -> str:
        """One label; what became of it."""
        (found,) = self.label_all([(item, true_class)], at=at, partition=partition, time=time, **fields)
        return found

    def label_all(
        self,
        given: Sequence[tuple[Any, str | None]],
        *,
        at: float = BEGIN + 120,
        partition: int = 0,
        time: float | None = None,
        **fields: Any,
    ) -> list[str]:
        """Labels in one batch; what became of them, in no order."""
        if ("l", partition) not in self._assigned:
            self._assigned.add(("l", partition))
            self._labels.assign(partition, 0)
        records = []
        for item, true_class in given:
            label = {"model": "m", "item_id": str(item), "true_class": true_class, **fields}
            if time is not None:
                label["time"] = iso(time)
            label = {name: value for name, value in label.items() if value is not None}
            records.append(self._record("l", partition, label, at))
        before = self.results
        self._labels.process(partition, records, at)
        self._labels.flush(partition, at)
        return sorted((self.results - before).elements())

    def _record(self, kind: str, partition: int, value: Any, at: float) -> Record:
        offset = self._offsets[kind, partition]
        self._offsets[kind, partition] += 1
        return record(offset, value, timestamp=int(at * 1000), partition=partition)

    @property
    def results(self) -> Counter[str]:
        """How often each result of an unrequested label was counted."""
        found: Counter[str] = Counter()
        for metric in self.registry.collect():
            for sample in metric.samples:
                if sample.name == "credence_unrequested_labels_total" and sample.value:
                    found[sample.labels["result"]] += int(sample.value)
        return found

    def close(self, now: float = CLOSED_AT, *, epoch: int = 1, most: int = 100_000) -> int:
        return self.cohorts.advance(self.summary(), epoch=epoch, now=now, most=most)

    def entries(self) -> list[OutcomeEntry]:
        return page(self).labelled

    def summary(self) -> JoinSummary:
        return self.cohorts.summary()

    def cohort(self, at: float = BEGIN) -> Cohort:
        (found,) = [each for each in self.summary().cohorts if each.hour == at // HOUR]
        return found

    def outcomes(self) -> dict[str, str]:
        """By item the class, or why there is none, of the newest entry about it."""
        return {e.fact.item_id: e.label.true_class or e.label.unanswered for e in self.entries()}

    def waiting(self) -> int:
        return int(self.connection.client.hlen(self.keys("m").waiting))

    def lists(self) -> list[bytes]:
        """Digests in the lists of all cohorts."""
        client, prefix = self.connection.client, f"{self.connection.prefix}:{{m}}"
        names = [*client.scan_iter(f"{prefix}:cohort:*"), *client.scan_iter(f"{prefix}:closed:*")]
        return [digest for name in names for digest in client.lrange(name, 0, -1)]


def digests(items: Iterable[Any]) -> dict[str, int]:
    names = [str(item) for item in items]
    hashes = siphash24([name.encode() for name in names], HASH_KEY)
    return dict(zip(names, PoolKey(HASH_KEY, "m").join_digests(hashes).tolist(), strict=True))


def sampled_at(items: Iterable[Any], level: int) -> set[str]:
    """Items whose digest begins with so many zero bits."""
    return {item for item, digest in digests(items).items() if digest >> (64 - level) == 0}


def iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat()
