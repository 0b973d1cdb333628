"""How many labels an assessment may request now: a budget that lasts its period (pure).

A budget that renews is spent by a token bucket. A share of it, the reserve, is only for suspected groups. The
rest arrives in the bucket over the period, and the bucket holds at most the burst. What does not fit is not
lost: it arrives later in the period. While traffic is above its mean more arrives, while it is below, less. A
budget that does not renew is spent as fast as labels are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.config.assessments import AssessmentSettings
from service.store.facts import RequestFacts
from service.store.requests import Spending

DAY = 86_400.0

_CATCH_UP = 2.0
"""Most that arrives, as a multiple of the even pace: a budget that begins late in its period, or was unused
for long, is not spent in a rush."""

_RECENT = 0.25
"""Share of a period over which traffic is compared with that of the whole period."""

_FOLLOWED = 0.5
"""How much of the pace follows traffic. The rest does not, so that what one batch a night leaves is spent."""


@dataclass(frozen=True)
class BudgetState:
    """What an assessment may spend now."""

    window: str  # field of the budget that pays now
    remaining: int  # labels left in this window
    renews_at: float | None  # when the next window begins, seconds since the epoch; None if never
    available: int  # labels that may be requested now, for any group
    reserve: int  # labels left that only suspected groups may get
    spending: Spending | None  # what the bucket holds now; None of a budget that does not renew
    stored: bytes  # the record that `spending` follows from; empty without one
    # no label is left, even for a suspected group, long before the budget renews
    is_exhausted: bool

    def seconds_per_label(self, now: float) -> float:
        """Mean time between two labels for any group until the budget renews; infinite if no label is due."""
        left = self.remaining - self.reserve
        return math.inf if self.renews_at is None or left <= 0 else (self.renews_at - now) / left


def budget_state(
    name: str,
    settings: AssessmentSettings,
    requests: RequestFacts,
    *,
    now: float,
    traffic: Sequence[tuple[float, int]] = (),
) -> BudgetState:
    """What an assessment may spend.

    Args:
        name: of the assessment.
        settings: of the assessment.
        requests: what was spent so far.
        now: seconds since the epoch.
        traffic: predictions ever seen by some times, ascending; the last are those seen by now.
    """
    budget = settings.budget
    if budget.per_days is None:
        window = f"{name}|0"
        left = max(0, budget.labels - requests.budget.get(window, 0))
        return BudgetState(window, left, None, left, 0, None, b"", is_exhausted=left == 0)
    period = budget.per_days * DAY
    number = int(now // period)
    window, ends = f"{name}|{number}", (number + 1) * period
    used = requests.budget.get(window, 0)
    remaining = max(0, budget.labels - used)
    reserved = settings.reserved_labels
    paced = budget.labels - reserved
    burst = budget.burst_labels
    stored = requests.buckets.get(name, b"")
    last = Spending.parse(stored) if stored else Spending(number, 0, burst, now)
    begun = number * period
    if last.window != number:
        # The bucket keeps what it holds: if it were full, every period would begin in a rush.
        held = min(burst, last.tokens + max(0.0, begun - last.at) * paced / period)
        last = Spending(number, 0, held, max(begun, last.at))
    if last.at > now:
        # A clock has gone back. Requests do not wait until it catches up: the bucket holds at least what the
        # even pace brings by now, less what is spent.
        due = paced * (now - begun) / period - (used - last.reserve_used)
        last = replace(last, tokens=min(burst, max(last.tokens, due)), at=now)
    left = max(0, min(paced, paced - (used - last.reserve_used)))
    tokens = min(last.tokens, left)
    pace = _pace(traffic, period=period)
    # The last label arrives half its time before the end, or it would never be requested.
    arrive_by = ends - period / (2 * paced)
    arrived = _arrived(left - tokens, paced / period, pace, since=last.at, now=now, ends=arrive_by)
    tokens = min(burst, tokens + arrived, left)
    reserve = min(max(0, reserved - last.reserve_used), remaining)
    available = min(math.floor(tokens + 1e-9), remaining)
    spending = Spending(number, last.reserve_used, tokens, now)
    # A budget that lasts its period has spent its last label within the time of one label before it renews.
    is_exhausted = remaining == 0 and ends - now > period / budget.labels
    return BudgetState(
        window, remaining, ends, available, reserve, spending, stored, is_exhausted=is_exhausted
    )


def _arrived(coming: float, even_pace: float, pace: float, *, since: float, now: float, ends: float) -> float:
    """Tokens that arrive between two times, of those that are still to come by the end.

    With u to come and a time r left, du/dt = -p u / r: all of it arrives by the end, and evenly if p is 1.
    """
    rest = max(0.0, ends - now) / (ends - since) if since < ends else 0.0
    return float(min(coming * (1 - rest**pace), _CATCH_UP * even_pace * (now - since)))


def _pace(traffic: Sequence[tuple[float, int]], *, period: float) -> float:
    """Pace by the rate of recent traffic over its mean in a period; 1 while that is not known, 0 without any.

    Between the times that are known, predictions are taken to have come evenly.
    """
    if not traffic:
        return 1.0
    times, counts = np.array(traffic, np.float64).T
    now, recent = times[-1], _RECENT * period
    if now - times[0] < 2 * recent:
        return 1.0
    begin = max(times[0], now - period)
    before, until_recent = np.interp([begin, now - recent], times, counts)
    predictions = counts[-1] - before
    if predictions <= 0:
        return 0.0
    relative = (counts[-1] - until_recent) / recent * (now - begin) / predictions
    return float(1 - _FOLLOWED + _FOLLOWED * relative)
