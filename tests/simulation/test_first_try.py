"""The README's configuration spends its labels evenly, and finds a fault within the announced time."""

from __future__ import annotations

from benchmarks.first_try import Case, announced, run
from service.demo.servers import EmbeddedRedis

CASE = Case(days_before=4, days_after=12, hours=2)


def test_a_region_that_falls_is_found_by_drift_and_confirmed_and_labels_are_left_for_it(
    redis_server: EmbeddedRedis,
) -> None:
    found = run(CASE, redis_server.url, seed=0)
    assert found.gini < 0.2
    assert found.left > 0.2
    assert found.drift is not None
    assert found.drift <= 1
    assert found.confirmed is not None
    assert found.confirmed <= 1.5 * announced(CASE)["confirmed"]
