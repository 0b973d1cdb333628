"""Pools of a simulation: of every group that is asked about, the items that come next.

As in the service, an item's priority grows with its time and has random noise, and a draw takes the item of
highest priority away. So while labels come at one pace nearly every item that is drawn has just come: an
older one that was passed over once is passed over for good.

`python -m benchmarks.priority_pools` prints how many labels after a change are of items from before it, by
how many more labels are requested from the change on.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from service.domain.arrays import Floats, Indices


class Items(NamedTuple):
    """Items that came, of any number [n]."""

    places: Indices  # what the simulation knows them by
    at: Floats  # when they came, s


class PriorityPools:
    """Pools of groups by any name, filled by `add` and emptied by `draw`.

    Args:
        decay: of an item's weight with its age, 1/s.
        depth: items that a group's pool holds.
        rng: of the noise in priorities.
    """

    def __init__(self, decay: float, depth: int, rng: np.random.Generator) -> None:
        self._decay, self._depth, self._rng = decay, depth, rng
        self._pools: dict[Any, tuple[Floats, Items]] = {}

    def add(self, group: Any, items: Items, since: float) -> None:
        """Items of a group come; the same `since` (s) for all items, near their times."""
        priorities = self._decay * (items.at - since) + self._rng.gumbel(size=len(items.at))
        if group in self._pools:
            earlier, held = self._pools[group]
            priorities = np.append(earlier, priorities)
            items = Items(np.append(held.places, items.places), np.append(held.at, items.at))
        order = np.argsort(-priorities)[: self._depth]
        self._pools[group] = priorities[order], Items(items.places[order], items.at[order])

    def draw(self, group: Any, count: int) -> Items:
        """The next items of a group; fewer where its pool runs dry."""
        priorities, items = self._pools[group]
        self._pools[group] = priorities[count:], Items(items.places[count:], items.at[count:])
        return Items(items.places[:count], items.at[:count])


HOURS: Final = 6  # between two batches of labels
PACES: Final = (1, 2, 4, 8)
_BEFORE, _AFTER = 40, 4  # batches
_LABELS, _ITEMS = 25, 2_500  # a batch
_RUNS: Final = 40


def old_shares(pace: int, rng: np.random.Generator) -> Floats:
    """Shares of the labels of each batch after a change that are of items from before it [_AFTER].

    Args:
        pace: by how many times more labels a batch has from the change on.
        rng: of one run.
    """
    pools, shares = PriorityPools(np.log(2) / 24, pace * _ITEMS, rng), np.zeros(_AFTER)
    for batch in range(-_BEFORE, _AFTER):
        pools.add("group", Items(np.arange(_ITEMS), HOURS * (batch + rng.random(_ITEMS))), 0.0)
        drawn = pools.draw("group", _LABELS * (pace if batch >= 0 else 1))
        if batch >= 0:
            shares[batch] = np.mean(drawn.at < 0)
    return shares


def main() -> None:
    """Print a row for every pace; items lose half of their chance in 24 hours."""
    rng = np.random.default_rng(0)
    spans = [f"{HOURS * batch} to {HOURS * (batch + 1)} h" for batch in range(_AFTER)]
    print(f"| labels after the change | {' | '.join(spans)} |")
    print(f"| --- {'| ---: ' * _AFTER}|")
    for pace in PACES:
        shares = np.mean([old_shares(pace, rng) for _ in range(_RUNS)], axis=0)
        name = "as many as before" if pace == 1 else f"{pace} times as many"
        print(f"| {name} | {' | '.join(f'{share:.0%}' for share in shares)} |")


if __name__ == "__main__":
    main()
