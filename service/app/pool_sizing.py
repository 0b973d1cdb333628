"""Which pools a model keeps, and how many items they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from service.config.settings import Settings
from service.domain.cells import CellSpace
from service.domain.pool import PoolSizes
from service.domain.pool_key import pool_ids

POOLED_PER_LABEL = 2
"""Pooled items of a group per label of the budgets that may go to it: all of a budget can be spent before the
next predictions come, even where chance leaves a group few items above its bound."""

FEWEST_POOLED = 16
"""Items of a group that are pooled for small budgets."""


def asked_pools(settings: Settings, model: str, space: CellSpace) -> dict[str, str]:
    """Pool ids of the groupings that assessments of a model ask by."""
    chosen = settings.models[model]
    return pool_ids(
        space,
        [asked.asked_grouping for asked in chosen.assessments.values()],
        half_life_hours=chosen.draw_half_life_hours,
    )


def pool_sizes(settings: Settings, model: str, pools: Mapping[str, str]) -> PoolSizes:
    """How many items are pooled, by pool: enough if one group takes all labels of a budget."""
    budgets = Counter[str]()
    for asked in settings.models[model].assessments.values():
        budgets[asked.asked_grouping] += asked.budget.labels
    return PoolSizes(
        {pool: max(FEWEST_POOLED, POOLED_PER_LABEL * budgets[grouping]) for grouping, pool in pools.items()},
        settings.bounds.pool_items,
    )
