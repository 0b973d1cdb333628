"""Days until a fault is found: announced by arithmetic, and simulated through the service's own statistics.

One group of several becomes less accurate. Labels are requested as in the service, and every simulated run is
looked at as the service does it: change points, half-life and learned prior, and e-processes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.domain.arrays import Floats
from service.replay.fault_replay import FaultyItems, Found, look_times, run_faults
from service.replay.tables import Cell, Table, print_tables
from service.statistics.detection_time import (
    Detection,
    Fault,
    Labelling,
    PolicyFamily,
    Rules,
    days_to_detection,
)

_ITEMS = 1_000  # of every group


@dataclass(frozen=True)
class Case:
    """A fault in one of several equally large groups; the threshold is half-way down the drop."""

    accuracy: float
    drop: float
    groups: int
    per_day: float
    half_life_days: float | None = None
    policy: PolicyFamily = "even"

    def __str__(self) -> str:
        half_life = "no half-life" if self.half_life_days is None else f"{self.half_life_days:g} d"
        fault = f"{100 * self.accuracy:.0f}% - {100 * self.drop:.0f}"
        return f"{fault}, {self.groups} groups, {self.per_day:g} a day, {half_life}, {self.policy}"

    @property
    def fault(self) -> Fault:
        """In the group that arrives in the middle."""
        return Fault(self.accuracy, self.drop, (self.groups + 1) // 2 - 1)

    @property
    def labelling(self) -> Labelling:
        """Of groups that have the same traffic."""
        shares = np.full(self.groups, 1 / self.groups)
        return Labelling(shares, self.per_day, self.policy, half_life_days=self.half_life_days)

    @property
    def rules(self) -> Rules:
        """With the defaults of the service."""
        return Rules(self.accuracy - self.drop / 2)

    def announced(self) -> Detection:
        """By arithmetic."""
        return days_to_detection(self.fault, self.labelling, self.rules)

    def simulated(self, runs: int, seed: int = 1, *, since: float = 0.0, within: float = np.inf) -> Found:
        """Evaluated until well after both rules are announced to have found the fault.

        With `since`, looks begin at this share of the median of the earlier rule. With `within`, they end at
        so many times the 90% quantile of the later one.
        """
        announced = self.announced()
        looks = look_times(announced, self.per_day / self.groups)
        looks = looks[looks >= since * min(announced.alert.median, announced.confirmed.median)]
        looks = looks[looks <= within * max(announced.alert.late, announced.confirmed.late)]
        return run_faults(self._items(), self.labelling, self.rules, looks, runs=range(runs), seed=seed)

    def _items(self) -> FaultyItems:
        groups = np.repeat(np.arange(self.groups), _ITEMS)
        place = np.tile(np.arange(_ITEMS), self.groups)
        right = place < round(_ITEMS * self.accuracy)
        faulty = self.fault.group
        right_after = np.where(groups == faulty, place < round(_ITEMS * self.fault.after), right)
        return FaultyItems(
            names=[str(group) for group in range(self.groups)],
            groups=groups,
            bins=np.zeros(len(groups), np.intp),
            bin_count=1,
            scores=np.full(len(groups), self.accuracy),
            correct=right,
            correct_after=right_after,
            faulty=faulty,
        )


CASES: Final = (
    Case(0.90, 0.10, 2, 50, 30),
    Case(0.96, 0.14, 8, 50),
    Case(0.80, 0.20, 8, 100, 7),
    Case(0.90, 0.20, 8, 50, None, "adaptive"),
    Case(0.98, 0.05, 2, 100),
    Case(0.96, 0.10, 8, 500, 30),
    Case(0.90, 0.20, 8, 200),
    Case(0.96, 0.20, 8, 50, 7, "adaptive"),
    Case(0.90, 0.20, 2, 200, 1),
    Case(0.80, 0.20, 2, 20, 30),
    Case(0.96, 0.20, 50, 500, 7),
    Case(0.90, 0.15, 50, 500),
    Case(0.96, 0.14, 2, 20, 7),
    Case(0.98, 0.20, 8, 20, 30),
)


def quantile(days: Floats, share: float) -> float:
    """Days within which this share of the runs finds the fault; infinite if fewer do."""
    return float(np.quantile(days, share, method="higher"))


def table(cases: tuple[Case, ...], runs: int) -> Table:
    """Announced and simulated days, side by side."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for case in cases:
        announced, found = case.announced(), case.simulated(runs)
        figures: list[Cell] = []
        for said, days in ((announced.alert, found.alert), (announced.confirmed, found.confirmed)):
            both = (said.median, quantile(days, 0.5), said.late, quantile(days, 0.9))
            figures.extend(value if np.isfinite(value) else None for value in both)
        rows.append((str(case), tuple(figures)))
    columns = tuple(
        f"{rule}, {share}{how}"
        for rule in ("alert", "confirmed")
        for share in ("median", "90%")
        for how in ("", " simulated")
    )
    return Table(
        "days until a fault is found, announced and simulated",
        "fault",
        columns,
        rows,
        notes=(f"{runs} runs; the threshold is half-way down the drop. -: not within the runs.",),
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Compare announced and simulated days to detection.")
    parser.add_argument("--runs", type=int, default=40, help="of every case")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    print_tables([table(CASES, options.runs)], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
