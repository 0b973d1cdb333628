"""A grouping is redefined between two processes: what it asked before counts no more; renamed, it goes on."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from store_site import NOW, Record, Site, message, outcomes, record

from service.domain.cells import definitions
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.snapshot import ModelSnapshot
from service.store.connection import Connection
from service.store.records import decode_fact, encode_packed

COUNT, BUDGET = 1_200, 200
CLASSES = ("cat", "dog", "owl", "hen")
PLACE = {"by": "attribute", "attribute": "region"}
KIND = {"by": "superclass", "superclasses": {"pet": ["cat", "dog"], "bird": ["owl", "hen"]}}
REDEFINED = {
    "place": PLACE | {"attribute": "device"},
    "kind": KIND | {"superclasses": {"pet": ["cat", "hen"], "bird": ["owl", "dog"]}},
}
OTHER = {"place": "kind", "kind": "place"}


def stream(first: int = 0) -> list[Record]:
    """Predictions of new items, that are alike whatever the first one is."""
    rng = np.random.default_rng(5)
    classes, regions, devices = rng.integers([4, 2, 2], size=(COUNT, 3)).T
    return [
        record(
            first + i,
            message(
                first + i,
                predicted_class=CLASSES[classes[i]],
                score=0.8,
                attributes={
                    "region": ("north", "south")[regions[i]],
                    "device": ("phone", "desk")[devices[i]],
                },
            ),
            timestamp=int(1_000 * (NOW - COUNT + i)),
        )
        for i in range(COUNT)
    ]


def configured(
    connection: Connection, redefined: str = "", budget: int = BUDGET, *, renamed: str = ""
) -> Site:
    groupings: dict[str, Any] = {"place": PLACE, "kind": KIND, "class": {"by": "predicted_class"}}
    if redefined:
        groupings[redefined] = REDEFINED[redefined]
    called = {name: f"{name}-anew" if name == renamed else name for name in groupings}
    asked = {"policy": "random", "budget": {"labels": budget}, "max_in_flight": 100}
    settings = {
        "classes": list(CLASSES),
        "score_bins": 2,
        "traffic_half_life_days": None,
        # The prior that is learned takes most of a round; evidence and counts of labels do not depend on it.
        "prior": "informed_jeffreys",
        "groupings": {called[name]: grouping for name, grouping in groupings.items()},
        "assessments": {f"by-{name}": asked | {"grouping": called[name]} for name in OTHER},
    }
    return Site(connection, {"m": settings})


def labelled(site: Site, first: int = 0) -> ModelSnapshot:
    """What is known once predictions have come and the requests of some rounds have been answered."""
    site.take_in(stream(first))
    monitor, now = site.monitor("m"), NOW + first
    for _ in range(8):  # the last ones for draws that others had drawn
        monitor.refresh(now)
        monitor.ask(epoch=1, now=now)
        site.answer("m", lambda item: CLASSES[item % len(CLASSES)])
    return monitor.refresh(now)


def taken(site: Site, first: int) -> ModelSnapshot:
    """What a process knows that has just started, once it has traffic."""
    site.take_in(stream(first))
    return site.monitor("m").refresh(NOW + first)


def drawn_for(site: Site, *by: bytes) -> int:
    """Labels that were drawn for groupings that are by this, whoever drew them first."""
    return len({entry.fact.request_id for entry in outcomes(site) if entry.fact.definition in by})


def counted(grouping: GroupingSnapshot) -> int:
    return int(grouping.beliefs.labels_counted.sum())


def assert_same_evidence(found: ModelSnapshot, before: ModelSnapshot, name: str, *, called: str = "") -> None:
    now, then = found.groupings[called or name].evidence, before.groupings[name].evidence
    assert now is not None
    assert then is not None
    assert now.groups == then.groups
    assert now.labels.marks.tolist() == then.labels.marks.tolist()
    for kind, shown in then.log_e.items():
        assert now.log_e[kind].tolist() == pytest.approx(shown.tolist(), nan_ok=True)


@pytest.fixture
def before(connection: Connection) -> ModelSnapshot:
    """What is known of the model before a grouping is redefined."""
    found = labelled(configured(connection))
    assert {counted(grouping) for grouping in found.groupings.values()} == {2 * BUDGET}
    return found


@pytest.mark.parametrize("name", sorted(REDEFINED))
class TestRedefined:
    def test_its_evidence_and_beliefs_begin_anew_and_others_keep_what_they_asked_for(
        self, connection: Connection, before: ModelSnapshot, name: str
    ) -> None:
        site = configured(connection, name)
        found = taken(site, COUNT)
        assert found.groupings[name].evidence is None
        assert_same_evidence(found, before, OTHER[name])
        still_known = drawn_for(site, definitions(site.space("m"))[OTHER[name]])
        assert BUDGET <= still_known < 2 * BUDGET
        assert {counted(grouping) for grouping in found.groupings.values()} == {still_known}

    @pytest.mark.usefixtures("before")
    def test_it_is_learned_from_what_is_asked_by_its_new_groups(
        self, connection: Connection, name: str
    ) -> None:
        site = configured(connection, name, budget=2 * BUDGET)
        evidence = labelled(site, COUNT).groupings[name].evidence
        assert evidence is not None
        fresh = drawn_for(site, definitions(site.space("m"))[name])
        assert evidence.state.labels.sum() == fresh > 0

    def test_once_it_is_defined_as_before_its_labels_count_again_and_those_of_meanwhile_do_not(
        self, connection: Connection, before: ModelSnapshot, name: str
    ) -> None:
        meanwhile = configured(connection, name, budget=2 * BUDGET)
        labelled(meanwhile, COUNT)
        found = taken(configured(connection), 2 * COUNT)
        assert_same_evidence(found, before, name)
        known = definitions(configured(connection).space("m"))
        counting = drawn_for(meanwhile, known[name], known[OTHER[name]])
        every = len({entry.fact.request_id for entry in outcomes(meanwhile)})
        assert every > counting == counted(found.groupings[name]) > 2 * BUDGET

    def test_by_another_name_it_keeps_its_evidence_and_all_labels_count(
        self, connection: Connection, before: ModelSnapshot, name: str
    ) -> None:
        found = taken(configured(connection, renamed=name), COUNT)
        assert_same_evidence(found, before, name, called=f"{name}-anew")
        assert {counted(grouping) for grouping in found.groupings.values()} == {2 * BUDGET}

    @pytest.mark.usefixtures("before")
    def test_outcomes_of_before_definitions_were_kept_are_taken_by_the_name(
        self, connection: Connection, name: str
    ) -> None:
        site = configured(connection, name)
        client, key = connection.client, site.keys("m").outcomes
        kept = client.xrange(key)
        client.delete(key)
        for entry, fields in kept:
            fact = msgspec.structs.replace(decode_fact(fields[b"fact"]), definition=b"")
            client.xadd(key, fields | {b"fact": encode_packed(fact)}, id=entry)
        found = taken(site, COUNT)
        evidence = found.groupings[name].evidence
        assert evidence is not None
        by_name = {entry.fact.request_id for entry in outcomes(site) if entry.fact.grouping == name}
        assert evidence.state.labels.sum() == len(by_name) >= BUDGET
        assert {counted(grouping) for grouping in found.groupings.values()} == {2 * BUDGET}
