"""Results of trials that are made up, for their reports."""

from __future__ import annotations

from service.app.trial.answers import Answering
from service.app.trial.ledger import FileTruth
from service.app.trial.results import LabelCounts, NextSteps, RandomLabels, RowCounts, TrialGroup, TrialResult
from service.demo.metrics import GroupReading


def group(
    name: str, mean: float, truth: float | None, *, grouping: str = "region", rows: int = 1_000
) -> TrialGroup:
    file = None if truth is None else FileTruth(rows, rows, round(truth * rows))
    reading = GroupReading(grouping, name, mean - 0.05, mean, mean + 0.05, share=0.5, labels=40, below=0.0)
    return TrialGroup(reading, file, has_changed=False, is_below=False)


def result(*groups: TrialGroup, cost: float | None = None) -> TrialResult:
    found = groups or (group("north", 0.9, 0.91), group("south", 0.8, 0.7))
    return TrialResult(
        source="sorter.csv",
        model="sorter",
        at=1_769_860_800.0,
        threshold=0.85,
        reports=[],
        groups={"region": found},
        rows=RowCounts(
            read=1_003,
            sent=1_000,
            refused={"invalid_field": 2, "unknown_class": 1},
            problems=["line 7, column score: invalid_field: expected a number, with a decimal point"],
            notes=[],
            is_whole=True,
            seconds=2.0,
        ),
        labels=LabelCounts(answered=100, budget=120, answering=Answering(2.0, 0.1), cost=cost),
        next=NextSteps(
            "trial.yaml", ["weakest-region: 9 labels a day"], ["credence check --config trial.yaml"]
        ),
        random=RandomLabels("region south", 40, labels=100, needed=[180, 200, 240]),
    )
