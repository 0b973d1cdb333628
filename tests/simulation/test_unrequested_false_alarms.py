"""A census confirms that healthy groups fail in few models, however often one looks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from benchmarks.several_labels import NOW, REGION, Items, World, settings_of, traffic_of
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.store.outcome_entries import OutcomeEntry
from service.store.records import ABSENT, Fact, LabelFact

RUNS, LOOKS, PER_LOOK = 40, 20, 60
ACCURACY, ALPHA = 0.8, 0.05
WORLD = World(classes=2, regions=3)
SETTINGS = settings_of(
    WORLD,
    unrequested_labels={"items": "census"},
    alerts={"min_accuracy": ACCURACY},
    reference={"labels": 50},
)


def healthy(seed: int, *, absent: float, requested: float) -> bool:
    """Whether anything is ever confirmed of groups at the threshold, some of whose labels are absent.

    Labels of incorrect predictions are absent more often. Some items are requested as well, and known long
    before the hour of their prediction closes.
    """
    rng = np.random.default_rng(seed)
    model, space = SETTINGS.models["m"], SETTINGS.cell_space("m")
    count = LOOKS * PER_LOOK
    regions, correct = rng.integers(0, WORLD.regions, count), rng.random(count) < ACCURACY
    is_absent = rng.random(count) < absent * np.where(correct, 0.5, 3.0)
    asked = rng.random(count) < requested
    arrived = np.arange(count) * 60.0
    known: Mapping[str, GroupingEvidence] = {}
    ledger = OutcomeLedger(space, unrequested="census")
    zeros = np.zeros(count, np.intp)
    items = Items(regions, np.full(count, ACCURACY), zeros, np.where(correct, 0, 1))
    traffic = traffic_of_count(items)
    events = sorted(
        [(arrived[item] + 86_400 * 5, item, False) for item in range(count)]
        + [(arrived[item] + 3_600, item, True) for item in np.flatnonzero(asked).tolist()]
    )
    for look in np.array_split(np.arange(len(events)), LOOKS):
        ledger.fold(
            [
                entry(items, float(arrived[item]), bool(is_absent[item]), (at, item, is_asked))
                for at, item, is_asked in events[look[0] : look[-1] + 1]
            ]
        )
        ledger.place()
        known = model_evidence(
            settings=model,
            index=GroupIndex(space, traffic, ledger.cells),
            ledger=ledger,
            open_requests={},
            reference=None,
            checkpoint=None,
            before=known,
        )
        if any(each.alarming.any() for each in known.values()):
            return True
    return False


def traffic_of_count(items: Items) -> Traffic:
    """The traffic, of the size that the tables of a world have."""
    more = np.resize(np.arange(len(items.regions)), 20_000)
    return traffic_of(Items(*(column[more] for column in items)), SETTINGS.cell_space("m"), WORLD)


def entry(items: Items, arrived: float, is_absent: bool, event: tuple[float, int, bool]) -> OutcomeEntry:
    at, item, requested = event
    region, now = str(items.regions[item]), NOW + at
    drawn = (f"r{item}", f"i{item}", REGION, region) if requested else ("", f"i{item}", ALL, ALL)
    predicted = NOW + arrived
    fact = Fact(*drawn, "0", ACCURACY, {REGION: region}, predicted, now - 1_800 if requested else predicted)
    label = LabelFact(str(items.truth[item]), now, "")
    if is_absent and not requested:
        label = LabelFact("", now, "", unanswered=ABSENT)
    position = (round(now * 1_000), item)
    return OutcomeEntry(position, position, "ask" if requested else "", fact, label)


@pytest.mark.parametrize(("absent", "requested"), [(0.0, 0.0), (0.02, 0.0), (0.02, 0.2)])
def test_healthy_groups_are_seldom_confirmed(absent: float, requested: float) -> None:
    false = np.mean([healthy(run, absent=absent, requested=requested) for run in range(RUNS)])
    # Two standard errors of 40 runs at 5% are 7 points.
    assert false <= ALPHA + 0.07
