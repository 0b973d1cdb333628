"""What a trial found: the estimates of every group beside what the file says of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.app.plain_text import plain
from service.app.trial.answers import Answering
from service.app.trial.ledger import FileTruth, Ledger
from service.app.trial.readings import Readings
from service.demo.metrics import GroupReading
from service.demo.report import GroupResult, misses_in_runs
from service.domain.groupings import ALL, GroupingKind
from service.serving.documents.group_measures import GroupState
from service.serving.documents.models import ModelState

FEWEST_ROWS: Final = 100
"""Rows with a true class from which on a group is compared. With fewer, chance moves the file's accuracy."""

_COMPARED: Final[frozenset[GroupingKind]] = frozenset({"all", "attribute", "predicted_class"})


@dataclass(frozen=True)
class TrialGroup:
    """One group.

    Attributes:
        reading: its estimate.
        file: what the file says of it; None of groups that no row names, such as `__other__`.
        has_changed: whether Credence found a change point of its accuracy.
        is_below: whether it is reported to be below the threshold.
    """

    reading: GroupReading
    file: FileTruth | None
    has_changed: bool
    is_below: bool

    @property
    def truth(self) -> float | None:
        """Accuracy of its rows; None if too few have a true class."""
        known = self.file is not None and self.file.with_truth >= FEWEST_ROWS
        return self.file.accuracy if self.file is not None and known else None

    @property
    def compared(self) -> GroupResult | None:
        """Interval beside truth, if that is known."""
        return None if self.truth is None else GroupResult(self.reading, self.truth)

    @property
    def name(self) -> str:
        """The group for people; control characters of the file are escaped."""
        grouping, group = self.reading.grouping, self.reading.group
        return "all traffic" if grouping == ALL else f"{grouping} {plain(group)}"


@dataclass(frozen=True)
class RandomLabels:
    """What labels drawn at random would have cost, for as many labels of one group.

    Attributes:
        group: for people.
        own: labels of it among those that Credence chose.
        labels: that Credence used, for all groupings together.
        needed: random labels until the group has as many, in each random order.
    """

    group: str
    own: int
    labels: int
    needed: Sequence[int]

    def sentence(self, cost: float | None) -> str:
        """The same for people; with the cost of a label, that of all."""
        median = statistics.median(self.needed)
        low, high = np.quantile(self.needed, [0.05, 0.95])
        text = (
            f"{median:,.0f} until {self.group} has {self.own:,} labels, as it has of these {self.labels:,} "
            f"(90% of random orders: {low:,.0f} to {high:,.0f})"
        )
        if cost is not None:
            text += f"; {cost * median:,.2f} instead of {cost * self.labels:,.2f}"
        return text


@dataclass(frozen=True)
class RowCounts:
    """What became of the rows of the file.

    Attributes:
        read: rows that were read.
        sent: that were streamed.
        refused: bad rows, by reason.
        problems: lines about the first bad rows.
        notes: further sentences about the file.
        is_whole: whether the whole file was streamed.
        seconds: that it was streamed for.
    """

    read: int
    sent: int
    refused: Mapping[str, int]
    problems: Sequence[str]
    notes: Sequence[str]
    is_whole: bool
    seconds: float


@dataclass(frozen=True)
class LabelCounts:
    """Labels of a trial.

    Attributes:
        answered: that Credence has.
        budget: that it might request.
        answering: how the true classes of the file answered; None if a person did.
        cost: of a label, in any unit; None if not named.
    """

    answered: int
    budget: int
    answering: Answering | None
    cost: float | None


@dataclass(frozen=True)
class NextSteps:
    """What to configure next.

    Attributes:
        configuration: path of the proposal.
        assessments: what it requests labels for, in sentences.
        commands: to run, in order.
        note: why none of them sends the file; empty if one does.
    """

    configuration: str
    assessments: Sequence[str]
    commands: Sequence[str]
    note: str = ""


@dataclass(frozen=True)
class TrialResult:
    """All that the report shows.

    Attributes:
        source: the file.
        model: its name.
        at: when the estimates were made, seconds since the epoch.
        threshold: accuracy that groups must have; None without one.
        reports: what Credence reports of groups, in sentences.
        groups: by grouping, that of all traffic first.
    """

    source: str
    model: str
    at: float
    threshold: float | None
    reports: Sequence[str]
    groups: Mapping[str, Sequence[TrialGroup]]
    rows: RowCounts
    labels: LabelCounts
    next: NextSteps
    random: RandomLabels | None = None

    @property
    def has_e_value(self) -> bool:
        """Whether a report is confirmed by an e-value."""
        return any("e-value" in report for report in self.reports)

    @property
    def compared(self) -> list[GroupResult]:
        """All groups whose truth is known."""
        every = (group.compared for groups in self.groups.values() for group in groups)
        return [each for each in every if each is not None]

    @property
    def lowest(self) -> TrialGroup | None:
        """The group with the lowest estimate; None without groups."""
        return lowest_of(self.groups)

    @property
    def coverage(self) -> str:
        """How many intervals hold the truth, in a sentence."""
        compared = self.compared
        if not compared:
            return f"not known: no group has {FEWEST_ROWS} rows with a true class"
        inside = sum(each.is_inside for each in compared)
        found = f"{inside} of {len(compared)} intervals hold the truth"
        if self.labels.answering is not None and self.labels.answering.noise:
            return f"{found}; wrong labels (--noise) were taken for the truth, so more miss it"
        return f"{found}{misses_in_runs(compared)}"


def lowest_of(groups: Mapping[str, Sequence[TrialGroup]]) -> TrialGroup | None:
    """The group with the lowest estimate in any grouping but that of all traffic; None without groups."""
    every = [group for name, of in groups.items() if name != ALL for group in of]
    return min(every, key=lambda each: each.reading.mean, default=None)


def read_groups(readings: Readings, state: ModelState, ledger: Ledger) -> dict[str, list[TrialGroup]]:
    """Every group that has traffic, by grouping, that of all traffic first."""
    names = [each.name for each in state.groupings if each.by in _COMPARED]
    found = {}
    for grouping in sorted(names, key=lambda name: name != ALL):
        truths = ledger.truths(grouping)
        found[grouping] = [_group(grouping, each, truths) for each in readings.groups(grouping)]
    return found


def _group(grouping: str, state: GroupState, truths: Mapping[str, FileTruth]) -> TrialGroup:
    reading = GroupReading(
        grouping=grouping,
        group=state.group,
        lower=state.accuracy.lower,
        mean=state.accuracy.mean,
        upper=state.accuracy.upper,
        share=state.share,
        labels=state.labels_correct + state.labels_incorrect,
        below=state.accuracy_below or 0.0,
    )
    return TrialGroup(
        reading, truths.get(state.group), state.change_point is not None, state.verdict == "fails"
    )
