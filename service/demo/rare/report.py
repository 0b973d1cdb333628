"""What the demo of a rare class prints, and whether it showed what it is to show."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from service.demo.rare.configuration import ADAPTIVE, LABELS, MODELS, RANDOM
from service.demo.rare.observer import RecallReading
from service.demo.rare.transactions import PREVALENCE, true_performance
from service.statistics import beta

MOST_OF_RANDOM = 0.5
"""Width of the interval of recall after adaptive labels, as a part of that after labels at random, at most.

How many frauds are among labels at random is luck, and so is a part of either width.
"""

DOLLARS_PER_LABEL = 2.0
"""What a review of a transaction is taken to cost."""

_INTERVAL = 0.95
_MOST_FRAUDS = 1_000_000


@dataclass(frozen=True)
class Outcome:
    """What one model's labels led to."""

    reading: RecallReading
    labels: int  # that were sent
    frauds: int  # among them
    flagged_frauds: int  # of these, those that the classifier flagged

    @property
    def counted(self) -> RecallReading:
        """The recall by labels at random alone: the flagged share of their frauds, with a Jeffreys prior."""
        found = np.array(self.flagged_frauds + 0.5)
        missed = np.array(self.frauds - self.flagged_frauds + 0.5)
        lower, upper = beta.interval(found, missed, _INTERVAL)
        median, _ = beta.interval(found, missed, 0.0)
        return RecallReading(float(lower), float(median), float(upper), self.labels, self.reading.taken_at)


def recall_line(elapsed: float, readings: Mapping[str, RecallReading]) -> str:
    """What both models know, in one line."""
    labels = min(reading.labels for reading in readings.values())
    parts = [
        f"{model.removeprefix('fraud-')} {reading.median:.1%} [{reading.lower:.1%}, {reading.upper:.1%}], "
        f"{reading.points:.0f} points wide"
        for model, reading in readings.items()
    ]
    return f"{elapsed:5.1f} s  {labels:3d} labels each  recall {'; '.join(parts)}"


def failures(outcomes: Mapping[str, Outcome]) -> list[str]:
    """What was not shown, in sentences; nothing if all was."""
    if missing := [model for model in MODELS if model not in outcomes]:
        return [f"Credence showed no recall of {', '.join(missing)}"]
    found = [
        f"only {outcome.labels} of {LABELS} labels of {model} came in time"
        for model, outcome in outcomes.items()
        if outcome.labels < LABELS
    ]
    adaptive, random = (outcomes[model].reading.points for model in (ADAPTIVE, RANDOM))
    if adaptive > random * MOST_OF_RANDOM:
        found.append(
            f"adaptive labels left the recall uncertain by {adaptive:.1f} points, those at random by "
            f"{random:.1f} (wanted: at most half of it)"
        )
    return found


def random_labels_for(points: float) -> int | None:
    """Labels at random whose interval is this wide; None if that takes a billion or so.

    Only the frauds among them say something of the recall, and these are as rare as in the stream. The
    interval is that of a Jeffreys prior, with as many frauds found as the true recall has it.
    """
    recall = true_performance().recall

    def is_enough(frauds: int) -> bool:
        found = recall * frauds
        lower, upper = beta.interval(np.array(found + 0.5), np.array(frauds - found + 0.5), _INTERVAL)
        return bool(100 * (upper - lower) <= points)

    if not is_enough(_MOST_FRAUDS):
        return None
    return round((bisect_left(range(1, _MOST_FRAUDS), True, key=is_enough) + 1) / PREVALENCE)


def print_summary(console: Console, outcomes: Mapping[str, Outcome]) -> None:
    """Print intervals beside the truth, labels, and what certainty costs."""
    truth = true_performance()
    table = Table(box=None, pad_edge=False, title=f"Recall at the threshold; true recall {truth.recall:.1%}")
    table.add_column("labels")
    for title in ("recall", "95% interval", "width", "inside", "labels", "frauds among them", "cost"):
        table.add_column(title, justify="right")
    rows = [(model.removeprefix("fraud-"), outcome.reading, outcome) for model, outcome in outcomes.items()]
    if RANDOM in outcomes:
        rows.append(("random, counted without scores", outcomes[RANDOM].counted, outcomes[RANDOM]))
    for name, reading, outcome in rows:
        table.add_row(
            name,
            f"{reading.median:.1%}",
            f"{reading.lower:.1%} - {reading.upper:.1%}",
            f"{reading.points:.1f} points",
            "yes" if reading.contains(truth.recall) else "no",
            str(outcome.labels),
            str(outcome.frauds),
            dollars(outcome.labels),
        )
    console.print(table)
    console.print()
    if ADAPTIVE in outcomes:
        console.print(
            certainty_line(outcomes[ADAPTIVE].reading.points), markup=False, highlight=False, soft_wrap=True
        )


def certainty_line(points: float) -> str:
    """How many labels at random are as certain, and their cost."""
    needed = random_labels_for(points)
    if needed is None:
        return "No number of labels at random that anybody would pay for is as certain."
    return (
        f"An interval of {points:.1f} points takes about {needed:,} labels at random: {dollars(needed)} at "
        f"${DOLLARS_PER_LABEL:g} a label."
    )


def dollars(labels: int) -> str:
    """What so many labels cost."""
    return f"${DOLLARS_PER_LABEL * labels:,.0f}"
