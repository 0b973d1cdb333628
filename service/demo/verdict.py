"""Whether the loop really closed: what decides the demo's exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from service.demo.findings import CERTAIN, Findings, is_weakest, weakest_probability
from service.demo.history import Stream
from service.demo.reading import GroupReading, Reading
from service.demo.world import DEGRADED_CAMERA

NOMINAL_MISS = 0.05  # probability that the truth is outside of a 95% interval
_IMPROBABLE = 0.001


@dataclass(frozen=True)
class GroupResult:
    """One group's interval beside the truth."""

    reading: GroupReading
    truth: float

    @property
    def is_inside(self) -> bool:
        """Whether the truth is in the interval."""
        return self.reading.lower <= self.truth <= self.reading.upper


def group_results(reading: Reading, stream: Stream, *, degraded_at: float | None) -> list[GroupResult]:
    """The groups whose truth the demo knows, each with its accuracy at the time of its estimate.

    `degraded_at` is when the camera degraded, in seconds since the epoch; None if it did not yet.
    """
    results: list[GroupResult] = []
    read_at = reading.snapshot_time or reading.time
    since = None if degraded_at is None or read_at < degraded_at else degraded_at
    for (grouping, group), believed in reading.groups.items():
        truth = stream.before(degraded_at if since is None else None).accuracy(grouping, group, since=since)
        if truth is not None:
            results.append(GroupResult(believed, truth))
    return results


def failures(reading: Reading, results: Sequence[GroupResult], found_at: Findings) -> list[str]:
    """What failed, in sentences; nothing if the loop closed."""
    found: list[str] = []
    if not reading.events.get("answered"):
        found.append("no label came back")
    if not results:
        found.append("Credence showed no interval of any group")
    misses = sum(not result.is_inside for result in results)
    probability = chance_of_misses(results)
    if misses and probability < _IMPROBABLE:
        found.append(
            f"the truth is outside {misses} of {len(results)} intervals of 95%; "
            f"so many or more would happen by chance with probability {probability:.1e}"
        )
    if not is_weakest(reading):
        found.append(
            f"the degraded camera was not found: {DEGRADED_CAMERA} is the weakest with probability "
            f"{weakest_probability(reading):.2f} (wanted: above {CERTAIN}, and a mean below the other's)"
        )
    if found_at.drifted_at is None:
        found.append(f"without labels it was not found that the traffic of {DEGRADED_CAMERA} has drifted")
    return found


def chance_of_misses(results: Sequence[GroupResult]) -> float:
    """Probability that as many 95% intervals or more miss the truth by chance.

    Groups of one grouping count as independent. A label counts in its group of every grouping, so misses of
    several groupings tend to come together. How much is not known, so the larger of two probabilities is
    given: with independent groupings, and with groupings as dependent as they can be (comonotone).

    Args:
        results: of all groups that the demo knows the truth of.
    """
    misses = sum(not result.is_inside for result in results)
    if not misses:
        return 1.0
    sizes = Counter(result.reading.grouping for result in results).values()
    # Probabilities of 1, 2, ... misses or more in each grouping.
    tails = [special.bdtrc(np.arange(size), size, NOMINAL_MISS) for size in sizes]
    levels = np.sort(np.concatenate(tails))[::-1]
    together = sum(np.count_nonzero(tail[:, None] >= levels, axis=0) for tail in tails)
    return float(
        max(levels[np.argmax(together >= misses)], special.bdtrc(misses - 1, len(results), NOMINAL_MISS))
    )
