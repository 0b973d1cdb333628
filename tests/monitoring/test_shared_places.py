"""A draw that shares the label of an earlier request has a place of its own in the sample of its grouping."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.config.model import ModelSettings
from service.domain.request_order import NO_PLACE, request_place
from service.domain.stratum_estimator import ESTIMATOR_BYTES, ESTIMATOR_TYPE
from service.monitoring.open_places import first_open, open_places
from service.monitoring.shared_draws import SharedDraws
from service.store.requests import OpenRequest

REGION, DEVICE = ("region", "north"), ("device", "d1")
SETTINGS = ModelSettings.model_validate(
    {
        "classes": ["cat", "dog"],
        "groupings": {
            "region": {"by": "attribute", "attribute": "region"},
            "device": {"by": "attribute", "attribute": "device"},
        },
        "assessments": {
            "regions": {"grouping": "region", "budget": {"labels": 5}},
            "devices": {"grouping": "device", "budget": {"labels": 5}},
        },
    }
)

draws = st.lists(
    st.tuples(st.integers(0, 19), st.sampled_from(["region", "device"])), unique=True, max_size=20
)


def shared(*draws: tuple[int, int, str, tuple[str, str]]) -> SharedDraws:
    """Draws, each an outcome, a place, a grouping and a group."""
    found = SharedDraws()
    for outcome, place, grouping, group in draws:
        found.add(outcome, place, grouping=grouping, group=group, suspected=False)
    return found


@given(draws)
def test_outcomes_have_the_place_of_their_draw_for_the_grouping_and_else_of_their_request(
    drawn: list[tuple[int, str]],
) -> None:
    outcomes, requests = np.arange(20, dtype=np.int64), np.arange(20, dtype=np.uint64)
    found = shared(*((outcome, 100 + outcome, name, (name, "g")) for outcome, name in drawn))
    places, suspected = found.places("region", outcomes, requests, np.zeros(20, np.bool_))
    assert places.tolist() == [100 + n if (n, "region") in drawn else n for n in range(20)]
    assert requests.tolist() == list(range(20))
    assert not suspected.any()


def test_outcomes_have_what_was_kept_of_their_draw_for_the_grouping() -> None:
    found = SharedDraws()
    found.add(2, 10, grouping="region", group=REGION, suspected=False, estimator=b"s" * ESTIMATOR_BYTES)
    own = np.array([b"o" * ESTIMATOR_BYTES] * 4, ESTIMATOR_TYPE)
    kept = found.estimators("region", np.arange(4, dtype=np.int64), own)
    assert [each.tobytes()[:1] for each in kept] == [b"o", b"o", b"s", b"o"]
    assert (found.estimators("device", np.arange(4, dtype=np.int64), own) == own).all()


def test_outcomes_are_suspected_as_by_their_draw_for_the_grouping() -> None:
    found = SharedDraws()
    found.add(2, 10, grouping="region", group=REGION, suspected=True)
    outcomes, own = np.arange(4, dtype=np.int64), np.array([True, False, False, False])
    places = np.arange(4, dtype=np.uint64)
    assert found.places("region", outcomes, places, own)[1].tolist() == [True, False, True, False]
    assert found.places("device", outcomes, places, own)[1].tolist() == own.tolist()


def test_the_first_place_of_a_group_is_of_outcomes_that_are_there() -> None:
    found = shared((1, 10, "region", REGION), (2, 20, "region", REGION), (3, 5, "device", DEVICE))
    there = np.array([2, 3], np.int64)
    assert found.first_places(there) == {REGION: 20, DEVICE: 5}
    assert found.last_place(there) == 20
    assert found.first_places(np.array([7], np.int64)) == {}


def test_draws_go_with_their_outcomes() -> None:
    found = shared((1, 10, "region", REGION), (2, 20, "region", REGION))
    found.keep(np.array([2], np.int64))
    assert len(found) == 1
    assert found.first_places(np.array([1, 2], np.int64)) == {REGION: 20}


def test_an_open_request_holds_back_every_group_that_it_was_drawn_for() -> None:
    later = OpenRequest("devices", "d1", {}, "cat", 0.9, 1, 2_000.0)
    first = OpenRequest("regions", "north", {}, "cat", 0.9, 1, 1_000.0, shared=(later,))
    opened = open_places({"r1": first}, SETTINGS, {"region": "region", "device": "device"})
    assert opened == {REGION: request_place(1_000.0, "r1"), DEVICE: request_place(2_000.0, "r1")}
    assert first_open(opened, "device", ["d1", "d2"]).tolist() == [opened[DEVICE], NO_PLACE]
