"""Token buckets: so many calls at once, so many per second in the long run."""

from __future__ import annotations

import math
from collections import OrderedDict


class Buckets:
    """One bucket per name, of the `most` names that were used last; a forgotten bucket is full.

    `burst` fits into a bucket, and `per_second` flows into it. Used by one thread alone.
    """

    def __init__(self, *, per_second: float, burst: float, most: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str, now: float) -> float:
        """Take one from a bucket: 0 if there was one, else the seconds until there is; `now` is monotonic."""
        level, since = self._levels.pop(name, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - since) * self._per_second)
        wait = 0.0
        if level >= 1:
            level -= 1
        else:
            wait = math.nextafter((1 - level) / self._per_second, math.inf)
        self._levels[name] = (level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait
