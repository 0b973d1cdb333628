"""An item that waits for a label takes about as much of Redis as `credence check` says."""

from __future__ import annotations

from join_site import BEGIN, CLOSED_AT, JoinSite

from service.domain.pending_joins import CLOSED_BYTES, WAITING_BYTES
from service.store.connection import Connection

ITEMS = 8_000
ATTRIBUTES = {"region": "eu-west-1", "device": "android-12", "camera": "dock-entrance"}


def bytes_of(site: JoinSite) -> float:
    """Memory per item of everything that is stored about waiting items."""
    client, keys = site.connection.client, site.keys("m")
    hour = BEGIN // 3_600
    names = [keys.waiting, keys.cohorts, keys.cohort(int(hour)), keys.closed(int(hour))]
    return sum(client.memory_usage(name, samples=0) or 0 for name in names) / ITEMS


def test_a_waiting_item_takes_what_is_said_and_less_after_the_close(connection: Connection) -> None:
    site = JoinSite(connection)
    for begin in range(0, ITEMS, 2_000):
        site.predict([f"order-{n:09d}" for n in range(begin, begin + 2_000)], attributes=ATTRIBUTES)
    site.label_all([(f"order-{n:09d}", "cat") for n in range(ITEMS)])
    assert 0.8 * WAITING_BYTES < bytes_of(site) < 1.1 * WAITING_BYTES
    assert site.close(CLOSED_AT) == ITEMS
    assert 0.8 * CLOSED_BYTES < bytes_of(site) < 1.1 * CLOSED_BYTES
