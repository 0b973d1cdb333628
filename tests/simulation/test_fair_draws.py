"""What is drawn of a group is a fair sample of its traffic, also when its pool runs dry."""

from __future__ import annotations

import pytest

from benchmarks.fair_draws import POOLS, draws, tally

OFTEN = 0

LEAST = 1e-4
"""p-values of ten seeded simulations: one in 10,000 is no chance."""


@pytest.mark.parametrize("pool", POOLS)
def test_items_of_a_group_that_came_together_are_drawn_equally_often(pool: str) -> None:
    assert tally(POOLS[pool], 8_000).evenness() > LEAST


@pytest.mark.parametrize("policy", ["thompson", "epsilon_greedy"])
def test_so_they_are_if_a_policy_names_the_groups(policy: str) -> None:
    assert tally(POOLS["dry in three shards"], 4_000, policy=policy).evenness() > LEAST


@pytest.mark.parametrize("pool", POOLS)
def test_draws_are_weighted_by_recency(pool: str) -> None:
    assert tally(POOLS[pool], 4_000, at_end=True).recency() > LEAST


def test_a_group_that_has_run_dry_waits_for_what_is_higher_than_all_that_was_dropped() -> None:
    found = [draw for draw in draws((1, 1, 27), key=3) if draw.kind == OFTEN and draw.replica == 0]
    assert sum(draw.batch == 0 for draw in found) == 1
