"""A binary classifier that is watched as the service does it, without Kafka and Redis.

Traffic and pool are a shard's, the assessments' policies name the groups to ask by what is believed of them,
labels stand in a ledger, and `performance_facts` tells what the performance is learned from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from benchmarks.known_classifiers import Items
from service.app.pool_sizing import asked_pools
from service.config.assessments import PerformanceSettings
from service.config.settings import Settings
from service.domain.arrays import Floats
from service.domain.grouping_pool import EMPTY_SKETCH, GroupingPool
from service.domain.pool import Pools
from service.domain.pool_key import PoolKey
from service.domain.shard import Candidates, Shard
from service.domain.traffic import Traffic
from service.domain.traffic_marks import ShardMarks
from service.domain.traffic_tables import tables
from service.domain.value_book import ValueBook
from service.monitoring.acquisition import acquisition_state
from service.monitoring.background_performance import POOLED_SCORES
from service.monitoring.binary_performance import PerformanceSnapshot, assess_performance
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.performance_facts import performance_facts
from service.monitoring.posteriors import assess_groupings
from service.statistics.policies import NONE, Situation
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact, PoolRecord

NOW = 1_800_000_000.0
CLASSES = ("ham", "spam")
REGION = "region"
ROOM = 10_000
"""Items of a group that are pooled."""


def _settings(threshold: float, regions: int, changes: Mapping[str, Any]) -> Settings:
    budget = {"labels": 100_000}
    curve = {"task": "performance", "positive_class": "spam", "threshold": threshold, "budget": budget}
    curve |= changes
    model: dict[str, Any] = {"classes": CLASSES, "assessments": {"curve": curve}}
    if regions > 1:
        model["groupings"] = {REGION: {"by": "attribute", "attribute": REGION}}
        model["assessments"]["weakest"] = {"task": "identification", "grouping": REGION, "budget": budget}
    return Settings.model_validate({"models": {"mail": model}})


class Source(Protocol):
    """Where scored items come from."""

    @property
    def shifts(self) -> Floats:
        """One number for every region."""

    def items(self, count: int, rng: np.random.Generator) -> Items:
        """So many items."""


class Watched:
    """Predictions come, and labels are asked for and answered.

    Where a classifier has several regions, an assessment that looks for the weakest asks too, in turn.

    Args:
        classifier: whose predictions they are.
        threshold: from which on it calls positive.
        rng: random numbers.
        room: items of a group that are pooled.
        changes: of the assessment's settings.
    """

    def __init__(
        self,
        classifier: Source,
        threshold: float,
        rng: np.random.Generator,
        *,
        room: int = ROOM,
        **changes: Any,
    ) -> None:
        self._classifier, self._threshold, self._rng = classifier, threshold, rng
        regions = len(classifier.shifts)
        settings = _settings(threshold, regions, changes)
        self._model, self._space = settings.models["mail"], settings.cell_space("mail")
        self._pool_ids = asked_pools(settings, "mail", self._space)
        self._book = ValueBook(lambda _, value: str(value), len(self._space.attributes))
        self._shard = Shard(
            self._space,
            next_offset=0,
            traffic=Traffic(tables(self._space)),
            pools=Pools({pool: GroupingPool(room, 100 * room) for pool in self._pool_ids.values()}),
            pool_groupings={pool: name for name, pool in self._pool_ids.items()},
            noise=PoolKey(rng.bytes(16), "mail").noise,
            decay=0.0,
            draw_decay=0.0,
            marks=ShardMarks(self._model.drift.slots, enough=1),
        )
        self._values = np.zeros((regions, 0), np.intp)
        if self._space.attributes:
            self._values = self._book.values(np.array(self._book.add([[str(n) for n in range(regions)]])))
        self._ledger = OutcomeLedger(self._space)
        self._items: dict[int, tuple[PoolRecord, str]] = {}
        self._asked: set[int] = set()
        self._labels = 0

    def take_in(self, count: int) -> None:
        """So many predictions come."""
        items = self._classifier.items(count, self._rng)
        called = (items.scores >= self._threshold).astype(np.intp)
        scores = np.where(called, items.scores, 1 - items.scores)
        hashes = self._rng.integers(2**63, size=count, dtype=np.uint64)
        for n, item in enumerate(hashes.tolist()):
            place = {REGION: str(items.regions[n])}
            record = PoolRecord(str(item), CLASSES[called[n]], float(scores[n]), NOW, place)
            self._items[item] = record, CLASSES[int(items.positive[n])]
        self._shard.add(
            Candidates(
                book=self._book,
                values=self._values[items.regions],
                classes=called,
                bins=self._space.bins(scores),
                scores=scores,
                times=np.full(count, NOW),
                arrivals=np.full(count, NOW),
                item_hashes=hashes,
                record=lambda _: b"",
            )
        )

    def ask(self, wanted: int) -> None:
        """So many labels are asked for, and answered."""
        assessments = list(self._model.assessments)
        for turn, name in enumerate(assessments):
            self._ask_for(name, len(range(turn, wanted, len(assessments))))

    def _ask_for(self, name: str, wanted: int) -> None:
        settings = self._model.assessments[name]
        grouping = assess_groupings(
            settings=self._model,
            index=self._index(),
            probability_sums={},
            ledger=self._ledger,
            at=NOW,
        )[settings.asked_grouping]
        adaptive = isinstance(settings, PerformanceSettings) and settings.policy == "adaptive"
        gains = self.believed().gains if adaptive else None
        stands = acquisition_state(settings, grouping, np.zeros(len(grouping.groups)), gains)
        if stands is None:
            raise ValueError("nothing can be asked yet")
        beliefs, available = stands.situation.beliefs, stands.situation.available.copy()
        entries: list[OutcomeEntry] = []
        while len(entries) < wanted and available.any():
            situation = Situation(beliefs, stands.situation.weights, available)
            group = int(stands.policy.choose(stands.task, situation, self._rng)[0, 0])
            if group == NONE:
                break
            item = self._drawn(self._pool_ids[settings.asked_grouping], grouping.groups[group])
            if item is None:
                available[0, group] = False
                continue
            beliefs.expect(np.array([group]))
            entries.append(self._answered(item, name, settings.asked_grouping, grouping.groups[group]))
        self._ledger.fold(entries)
        self._ledger.place()

    def _drawn(self, pool_id: str, group: str) -> int | None:
        """The next item of a group; it leaves the group's pool."""
        sketch = self._shard.pools.groupings[pool_id].sketches().get(group, EMPTY_SKETCH)
        # The sketch of a single shard is in the order of draws.
        for item in map(int, sketch.hashes[sketch.priorities >= sketch.bound]):
            self._shard.pools.take(pool_id, group, item)
            if item not in self._asked:
                self._asked.add(item)
                return item
        return None

    def _answered(self, item: int, assessment: str, grouping: str, group: str) -> OutcomeEntry:
        record, true_class = self._items[item]
        self._labels += 1
        position = (1, self._labels)
        fact = Fact(
            f"r{item}",
            record.item_id,
            grouping,
            group,
            record.predicted_class,
            record.score,
            record.attributes,
            NOW,
            NOW,
        )
        return OutcomeEntry(position, position, assessment, fact, LabelFact(true_class, NOW, ""))

    def _index(self) -> GroupIndex:
        return GroupIndex(self._space, self._shard.traffic, self._ledger.cells)

    def believed(self) -> PerformanceSnapshot:
        """What the service would show now."""
        pooled = np.array(list(self._shard.pools.holders), np.uint64)
        looked_at = self._rng.permutation(pooled)[:POOLED_SCORES].tolist()
        facts = performance_facts(
            self._index(),
            self._ledger,
            [self._items[item][0] for item in looked_at],
            positive=CLASSES[1],
            decay=0.0,
            now=NOW,
        )
        if facts is None:
            raise ValueError("nothing has come yet")
        curve = self._model.assessments_of(PerformanceSettings)["curve"]
        return assess_performance(facts, curve, self._rng, interval=self._model.interval, now=NOW)
