"""What the demo prints at its end, and whether the loop really closed, which decides its exit code."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import special

from service.demo.configuration import MIN_ACCURACY
from service.demo.journal import Stream
from service.demo.metrics import CERTAIN, Findings, GroupReading, Reading, is_weakest, weakest_probability
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


def group_results(reading: Reading, stream: Stream, *, changes: Sequence[float]) -> list[GroupResult]:
    """The groups whose truth the demo knows, each with its accuracy at the time of its estimate.

    `changes` are when the world changed, in seconds since the epoch, ascending: the camera degraded, or was
    repaired. The truth is that of the predictions between the changes before and after the estimate.
    """
    results: list[GroupResult] = []
    read_at = reading.snapshot_time or reading.time
    since = max((change for change in changes if change <= read_at), default=None)
    until = min((change for change in changes if change > read_at), default=None)
    for (grouping, group), believed in reading.groups.items():
        truth = stream.before(until).accuracy(grouping, group, since=since)
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


@dataclass(frozen=True)
class Measurements:
    """Measurements of one run; times are in seconds since the epoch."""

    streaming_at: float | None
    degraded_at: float | None
    first_request_seconds: float | None  # from the start of `credence run` to the first label request
    label_delays: Sequence[float]  # seconds from sending each label to its being in the metrics
    labels: int  # that Credence used
    # that random sampling needed, per seed; None where the most were too few
    random_labels: Sequence[int | None]
    most_labels: int  # where the search for these ended


def print_report(
    console: Console, results: Sequence[GroupResult], measured: Measurements, findings: Findings
) -> None:
    """Print intervals beside the truth, and measurements."""
    console.print(_groups(results))
    console.print()
    print_numbers(console, _numbers(results, measured, findings))


def print_numbers(console: Console, numbers: Sequence[tuple[str, str]]) -> None:
    """Print what was measured and its number, in two columns."""
    width = max(len(what) for what, _ in numbers)
    for what, number in numbers:
        console.print(f"{what:<{width}}  {number}", markup=False, highlight=False, soft_wrap=True)


def _groups(results: Sequence[GroupResult]) -> Table:
    table = Table(box=None, pad_edge=False, title="Accuracy of the predictions that come now")
    table.add_column("group")
    for title in ("accuracy", "95% interval", "labels", "truth", "inside"):
        table.add_column(title, justify="right")
    for result in results:
        reading = result.reading
        table.add_row(
            reading.group if reading.grouping == "all" else f"{reading.grouping} {reading.group}",
            f"{reading.mean:.1%}",
            f"{reading.lower:.1%} - {reading.upper:.1%}",
            f"{reading.labels:.0f}",
            f"{result.truth:.1%}",
            "yes" if result.is_inside else "no",
        )
    return table


def _numbers(
    results: Sequence[GroupResult], measured: Measurements, findings: Findings
) -> list[tuple[str, str]]:
    inside, delays = sum(result.is_inside for result in results), measured.label_delays
    return [
        ("truth inside the intervals", f"{inside} of {len(results)}{misses_in_runs(results)}"),
        ("labels used", str(measured.labels)),
        ("`credence run` started to first label request", _seconds(measured.first_request_seconds)),
        (
            "label sent to label in the metrics, median",
            _seconds(statistics.median(delays) if delays else None),
        ),
        *finding_times(measured.streaming_at, measured.degraded_at, findings),
        ("random sampling after the change, just as certain", random_labels_line(measured)),
    ]


def finding_times(
    streaming_at: float | None, degraded_at: float | None, findings: Findings
) -> list[tuple[str, str]]:
    """When the camera degraded and when what was found, in seconds since the stream began.

    `streaming_at` and `degraded_at` are in seconds since the epoch.
    """

    def since_start(moment: float | None) -> str:
        if moment is None or streaming_at is None:
            return "not in this run"
        return f"{moment - streaming_at:.1f} s"

    sure = f"(above {CERTAIN:.0%} sure)"
    return [
        (f"{DEGRADED_CAMERA} degraded", since_start(degraded_at)),
        ("known to have drifted, without labels", since_start(findings.drifted_at)),
        (f"known as the weakest camera {sure}", since_start(findings.weakest_at)),
        (f"known to be below {MIN_ACCURACY:.0%} {sure}", since_start(findings.below_at)),
        ("confirmed by evidence to have got worse", since_start(findings.confirmed_at)),
    ]


def misses_in_runs(results: Sequence[GroupResult]) -> str:
    """How many of a hundred runs have as many misses, if there are any."""
    misses = sum(not result.is_inside for result in results)
    if not misses:
        return ""
    runs = 100 * chance_of_misses(results)
    many = f"{misses} misses or more" if misses > 1 else "a miss or more"
    return f"; {many} in {'less than 1' if runs < 1 else f'about {runs:.0f}'} of 100 runs"


def random_labels_line(measured: Measurements) -> str:
    """How many labels random sampling needed, and what multiple of Credence's that is."""
    return times_as_many(measured.random_labels, labels=measured.labels, most=measured.most_labels)


def times_as_many(needed: Sequence[int | None], *, labels: int, most: int) -> str:
    """What random sampling needed in replays, of which each ended at `most`, beside Credence's labels."""
    if not needed or not labels:
        return "not computed"
    median = statistics.median(float("inf") if each is None else each for each in needed)
    if median > most:
        return f"more than {most:,} labels, {most / labels:.1f} times as many"
    return f"{median:,.0f} labels (median of {len(needed)} replays), {median / labels:.1f} times as many"


def _seconds(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2f} s"
