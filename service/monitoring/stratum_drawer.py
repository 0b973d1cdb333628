"""Draws items of groups by the strata of these, with what makes their labels evidence on error rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.domain.stratum_estimator import packed_estimator
from service.monitoring.item_drawer import Drawer, Pooled
from service.monitoring.stratum_plan import StratumPlan
from service.statistics.rates.label_evidence import stratum_estimator
from service.statistics.ratios import ratio


@dataclass(frozen=True)
class StratumDrawer:
    """Draws a stratum of every group that is named, and then its next item."""

    drawer: Drawer
    plan: StratumPlan
    rng: np.random.Generator

    def draw(self, groups: Sequence[str]) -> list[Pooled | None]:
        """An item of every group that is named, None where a group has to wait.

        The probability of strata that have no item to draw goes to the others, and their traffic counts as
        what says the least.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        plan, named = self.plan, [*dict.fromkeys(groups)]
        left = np.array(self.drawer.left(plan.strata.names(named)), np.intp)
        left = left.reshape(len(named), len(plan.strata))
        chosen: list[tuple[str, bytes] | None] = []
        for group in groups:
            at, of = plan.groups.index(group), left[named.index(group)]
            chances = np.where(of > 0, plan.chances[at], 0.0)
            if not chances.any():
                chosen.append(None)
                continue
            chances = ratio(chances, chances.sum(), 0.0)
            stratum = int(self.rng.choice(len(chances), p=chances))
            of[stratum] -= 1
            numbers = stratum_estimator(
                plan.shares[at],
                chances,
                plan.expected[at],
                selected=plan.strata.selected,
                drawn=stratum,
            )
            chosen.append((plan.strata.name(group, stratum), packed_estimator(numbers)))
        drawn = [one for one in chosen if one is not None]
        items = iter(self.drawer.draw([name for name, _ in drawn]))
        found = [None if one is None else (next(items), one[1]) for one in chosen]
        return [None if one is None or one[0] is None else replace(one[0], estimator=one[1]) for one in found]
