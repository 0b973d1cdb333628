"""What one process that nothing disturbs makes of a predictions topic, on a Redis of its own."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from layout import BOUNDS, MODELS
from store_site import Facts, Record, Site, read_facts
from workload import Workload

from service.store.connection import Connection
from service.store.records import decode_pool_record

BATCH = 500

Place = tuple[str, int, int, int | None]
"""Kind of topic, partition, offset, and index in an array, of a message."""


ALL_ITEMS = 100_000
"""A budget with which every item of a trial is pooled."""


@dataclass
class Reference:
    """What an undisturbed process makes of the predictions of one model.

    Attributes:
        facts: all of them.
        entrants: of every group that is asked about and partition, by item id, the records of that item that
            were offered to its pool, with the priorities of all that were alike.
    """

    facts: Facts
    entrants: dict[tuple[Any, ...], dict[str, dict[bytes, list[float]]]]

    @cached_property
    def predictions(self) -> dict[str, dict[tuple[Any, ...], int]]:
        """What outcomes may tell of every item's prediction, and how often that was sent."""
        found: dict[str, dict[tuple[Any, ...], int]] = defaultdict(dict)
        for items in self.entrants.values():
            for item_id, records in items.items():
                for encoded, priorities in records.items():
                    kept = decode_pool_record(encoded)
                    prediction = (
                        kept.predicted_class,
                        kept.score,
                        kept.time,
                        tuple(sorted(kept.attributes.items())),
                    )
                    found[item_id][prediction] = max(found[item_id].get(prediction, 0), len(priorities))
        return found


@dataclass(frozen=True)
class References:
    """What an undisturbed process makes of a predictions topic.

    Attributes:
        models: by their names.
        rejected: why each bad message is refused.
        records: of the topic, by partition.
    """

    models: dict[str, Reference]
    rejected: dict[Place, str]
    records: Mapping[int, Sequence[Any]]


def references_of(
    connection: Connection, records: Mapping[int, Sequence[Any]], workload: Workload, *, registry_url: str
) -> References:
    """Take all records of the predictions topic, undisturbed.

    Records of every format are taken in as the native JSON that says the same; those of which nothing can be
    used, as they are.

    Args:
        connection: to a Redis and prefix of its own.
        records: of every partition, from its first one.
        workload: that made them.
        registry_url: of the registry with the schemas of bad records.
    """
    kafka = {"schema_registry": {"url": registry_url}}
    site = Site(connection, MODELS, bounds=BOUNDS, pause_window=10**9, kafka=kafka)
    step, now = site.prediction_step(), time.time()
    roomy = Site(
        Connection(connection.client, f"{connection.prefix}-roomy"),
        {name: model | {"assessments": _asking_for_all(model)} for name, model in MODELS.items()},
        bounds=BOUNDS | {"pool_items": 100 * ALL_ITEMS},
        pause_window=10**9,
        kafka=kafka,
    )
    roomy_step = roomy.prediction_step()
    for partition, kept in sorted(records.items()):
        for taking in (step, roomy_step):
            taking.assign(partition, kept[0].offset if kept else 0)
            for start in range(0, len(kept), BATCH):
                taking.process(partition, [_plain(r, workload) for r in kept[start : start + BATCH]], now)
                taking.flush(partition, now)
            taking.flush(partition, now + 1_000)
    rejected: dict[Place, str] = {
        ("predictions", letter.place.partition, letter.place.offset, letter.index): letter.error.reason
        for letter in site.letters.kept
    }
    models = {name: Reference(read_facts(site, name), _entrants(roomy, name)) for name in MODELS}
    return References(models, rejected, records)


def _asking_for_all(model: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one | {"budget": {"labels": ALL_ITEMS}} for name, one in model["assessments"].items()}


def _entrants(roomy: Site, model: str) -> dict[tuple[Any, ...], dict[str, dict[bytes, list[float]]]]:
    entrants: dict[tuple[Any, ...], dict[str, dict[bytes, list[float]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (*cell, record), priorities in read_facts(roomy, model).priorities.items():
        entrants[tuple(cell)][decode_pool_record(record).item_id][record] = priorities
    return entrants


def _plain(record: Any, workload: Workload) -> Record:
    plain = workload.plain(record)
    value, headers = (record.value, record.headers) if plain is None else (plain, ())
    return Record(record.offset, value, record.key, headers, record.timestamp, record.partition)
