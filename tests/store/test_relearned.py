"""A region that breaks is learned anew: from outcomes in a real Redis to what is believed and asked next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from store_site import NOW, Record, Site, message, record

from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection

BREAKS = 400
"""Items are numbered in the order of their predictions, one a second; odd ones are of the south."""

BEGIN = NOW - 1_000
ROOM = {"pool_items": 50_000}


def true_class(item: int) -> str:
    """Everywhere one in four predictions is wrong; in the south, from one item on, none is right."""
    right = np.random.default_rng(item).random() < 0.75
    return "dog" if item >= BREAKS and item % 2 else "cat" if right else "dog"


def settings(**fields: Any) -> dict[str, Any]:
    asking = {"grouping": "region", "policy": "random", "budget": {"labels": 1_000}, "max_in_flight": 60}
    return {
        "m": {
            "classes": ["cat", "dog"],
            "score_bins": 1,
            "groupings": {"region": {"by": "attribute", "attribute": "region"}},
            "prior": "uniform",
            "traffic_half_life_days": None,
            "assessments": {"random": asking, "thompson": {**asking, "policy": "thompson"}},
            **fields,
        }
    }


def prediction(item: int) -> Record:
    found = message(item, attributes={"region": ["north", "south"][item % 2]})
    return record(item, found, timestamp=int(1_000 * (BEGIN + item)))


@pytest.fixture
def labelled(connection: Connection) -> Connection:
    """As many labels again are asked for once the south is broken, of items from before and after."""
    site = Site(connection, settings(), bounds=ROOM)
    monitor = site.monitor("m")
    for first in (0, BREAKS):
        site.take_in([prediction(item) for item in range(first, first + BREAKS)])
        for _ in range(2):
            monitor.refresh(NOW)
            monitor.ask(epoch=1, now=NOW)
            site.answer("m", true_class)
    return connection


def seen(connection: Connection, **fields: Any) -> tuple[ModelSnapshot, dict[str, int]]:
    """A snapshot of a new process, and the position of every region."""
    taken = Site(connection, settings(**fields), bounds=ROOM).monitor("m").refresh(NOW)
    return taken, {name: g for g, name in enumerate(taken.groupings["region"].groups)}


def test_the_region_that_broke_is_reported_with_the_time_of_its_predictions(labelled: Connection) -> None:
    taken, _ = seen(labelled)
    relearned = taken.groupings["region"].change_points
    assert list(relearned) == ["south"]
    # Labels are of one item in a few; a dozen of these may tell nothing yet.
    assert relearned["south"].since == pytest.approx(BEGIN + BREAKS, abs=60)


def test_its_accuracy_is_that_of_now_and_known_by_fewer_labels(labelled: Connection) -> None:
    (forgets, at), (keeps, _) = seen(labelled), seen(labelled, forgetting={"after_change": False})
    south, north = at["south"], at["north"]
    now, ever = forgets.groupings["region"], keeps.groupings["region"]
    assert now.accuracy.mean[south] < 0.2 < ever.accuracy.mean[south]
    assert now.beliefs.labels[south] < 0.8 * ever.beliefs.labels[south]
    # Of a group without a change, older labels count less than the latest ones, but count.
    assert 50 < now.beliefs.labels[north] < ever.beliefs.labels[north]
    assert now.beliefs.labels_counted.tolist() == ever.beliefs.labels_counted.tolist()


def test_without_forgetting_nothing_is_estimated_again(labelled: Connection) -> None:
    taken, _ = seen(labelled, forgetting={"after_change": False})
    assert not taken.groupings["region"].change_points
