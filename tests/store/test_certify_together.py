"""Several assessments request labels for one grouping: what one has requested, another does not request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from store_site import NOW, Site
from test_gate import MODEL, REGIONS, stream

from service.monitoring.acquisition import open_draws
from service.statistics.certificates import CertificateTest
from service.store.connection import Connection

RELEASE = MODEL["assessments"]["release"]
LACKING = len(REGIONS) * CertificateTest(0.8).labels_left(
    CertificateTest(0.8).collected(*np.zeros((3, 1, 1))), 0.5
)


@pytest.fixture
def site(connection: Connection) -> Site:
    """Two assessments that want the same certificate."""
    found = Site(connection, {"m": model(release=RELEASE, nightly=RELEASE)})
    found.take_in(stream(0, 600))
    return found


def model(**assessments: Any) -> dict[str, Any]:
    return MODEL | {"assessments": assessments}


def rounds(site: Site, count: int) -> int:
    """How many requests are open after some rounds, of which none is answered."""
    monitor = site.monitor("m")
    for _ in range(count):
        monitor.refresh(NOW)
        monitor.ask(epoch=1, now=NOW)
    return len(site.reader("m").requests().open)


def test_two_certify_assessments_of_one_grouping_request_what_one_lacks(site: Site) -> None:
    assert rounds(site, 1) == LACKING


def test_two_certify_assessments_wait_for_the_requests_of_both(site: Site) -> None:
    assert rounds(site, 3) == LACKING


def test_both_assessments_know_the_requests_of_their_grouping(site: Site) -> None:
    rounds(site, 1)
    states = site.monitor("m").refresh(NOW).assessments
    assert states["release"].awaited.sum() == states["nightly"].awaited.sum() == LACKING
    assert sum(each.open_requests for each in states.values()) == LACKING


def test_an_item_that_two_groupings_drew_is_awaited_by_both(connection: Connection) -> None:
    everything = {"budget": {"labels": 30}, "max_in_flight": 30, "policy": "random"}
    by_region = everything | {"task": "estimation", "grouping": "region"}
    site = Site(connection, {"m": model(regions=by_region, whole=everything)})
    site.take_in(stream(0, 6))
    rounds(site, 1)
    drawn = open_draws(site.settings.models["m"], site.reader("m").requests())
    assert {grouping: len(draws) for grouping, draws in drawn.items()} == {"region": 6, "all": 6}
