"""How many values of an attribute have groups of their own, and how much traffic has none."""

from __future__ import annotations

import pytest
from traffic_tables import JointCell, traffic_of

from service.domain.cells import AGREE, CHALLENGE, MISSING, OTHER, CellBounds, CellSpace, Challenge
from service.domain.groupings import ByAttribute, ByChallenger
from service.monitoring.group_index import attribute_traffic

SPACE = CellSpace(
    ("cat", "dog"),
    (),
    {
        CHALLENGE: ByChallenger(CHALLENGE, CHALLENGE),
        "region": ByAttribute("region", "region"),
    },
    CellBounds(attribute_values=7),
    challenge=Challenge("v2"),
)


def test_of_every_attribute_but_votes_values_are_counted_without_reserved_ones() -> None:
    weights = {"north": 5.0, "south": 2.0, OTHER: 2.0, MISSING: 1.0}
    cells = [JointCell((AGREE, region), 0, 0, 1, weight, 0.0) for region, weight in weights.items()]
    found = attribute_traffic(SPACE, traffic_of(SPACE, cells))
    assert found.keys() == {"region"}
    assert (found["region"].values, found["region"].limit) == (2, 7)
    assert found["region"].other_share == pytest.approx(0.2)


def test_without_traffic_nothing_is_among_other_values() -> None:
    (found,) = attribute_traffic(SPACE, traffic_of(SPACE, [])).values()
    assert (found.values, found.other_share) == (0, 0.0)
