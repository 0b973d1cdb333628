"""True classes that nobody requested: late, or of some items only, beside a few requested labels.

A stream of loans: a model predicts whether a loan will be repaid, and knows the applicant's salary range. In
the last quarter one range becomes less accurate. Everything goes through the service's own consumers, store
and rounds, on a real Redis, with a clock of its own. `--file` streams a recording instead: a compressed CSV
file with the columns `timestamp`, `y_pred`, `y_pred_proba`, `repaid` and `salary_range`.

- Late: all true classes arrive 30 days late, and no label is requested. Is the fall confirmed?
- Some: only accepted loans ever get their true class. Is the accuracy of these labels that of all? What do
  requested labels beside them give, and what do requested labels alone?
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import special

from benchmarks.loans import BEGAN, CLASSES, DAYS, RANGE, Loans
from benchmarks.site import DAY, MODEL, open_site, settings_of
from service.demo.servers import EmbeddedRedis
from service.domain.arrays import Flags
from service.domain.groupings import ALL
from service.monitoring.evidence_base import EvidenceKind
from service.monitoring.snapshot import ModelSnapshot

SETTLED_DAYS = 30.0
"""From a prediction to its true class."""
TARGET = 0.91
UNCHANGED = 170
"""Days of the cases with some true classes, at most."""
LESS_ACCURATE: Final[tuple[EvidenceKind, ...]] = ("below_threshold", "declined", "changed")
RUN_LENGTH = 20_000
"""Labels of a group between two changes: a census has more of them in the same time."""


@dataclass(frozen=True)
class Case:
    """What is tried.

    Attributes:
        arrive: whose true classes arrive without a request: "all", "accepted" loans, or "none".
        requests: labels that are requested in all, evenly over time.
        grouping: that requests them.
        days: how much of the stream.
    """

    arrive: str
    requests: int
    grouping: str = ALL
    days: float = DAYS

    def settings(self) -> dict[str, Any]:
        """The configuration of the model."""
        model: dict[str, Any] = {
            "classes": CLASSES,
            "groupings": {
                RANGE: {"by": "attribute", "attribute": RANGE},
                "predicted_class": {"by": "predicted_class"},
            },
            "alerts": {"min_accuracy": TARGET},
            "forgetting": {"run_length": RUN_LENGTH},
        }
        if self.arrive != "none":
            items = "census" if self.arrive == "all" else "unknown"
            model["unrequested_labels"] = {"items": items}
            if items == "unknown":
                model["unrequested_labels"]["wait_days"] = SETTLED_DAYS + 2
        if self.requests:
            a_week = max(1, round(7 * self.requests / self.days))
            budget = {"labels": a_week, "per_days": 7, "burst": 0.5, "reserve": 0.0}
            asked = {"grouping": self.grouping, "task": "estimation", "budget": budget}
            model["assessments"] = {"ask": asked}
        return model


@dataclass(frozen=True)
class Found:
    """What one run showed at its end; of every range, and last of all traffic.

    Attributes:
        truth: accuracy of the predictions of the last 30 days.
        mean: the estimate of it.
        lower: lower end of its interval.
        upper: upper end.
        naive: of all traffic, accuracy of the labels that arrived without a request, and the ends of their
            interval, if they were a random sample.
        requested: labels that were requested.
        arrived: labels that arrived without a request.
        confirmed: kind of evidence against a range that was confirmed first, and the day; None of others.
    """

    truth: list[float]
    mean: list[float]
    lower: list[float]
    upper: list[float]
    naive: tuple[float, float, float] | None
    requested: int
    arrived: int
    confirmed: list[tuple[EvidenceKind, int] | None]


def run(case: Case, loans: Loans, redis_url: str, seed: int) -> Found:
    """Stream the loans, with a round a day."""
    rng = np.random.default_rng(seed)
    settings = settings_of(case.settings(), redis_url)
    confirmed: list[tuple[EvidenceKind, int] | None] = [None] * len(loans.names)
    requested, arrived = 0, np.zeros(0, np.intp)
    arrives = {"all": loans.predicted >= 0, "accepted": loans.predicted == 1, "none": loans.predicted < 0}
    with open_site(settings, rng) as site:
        for day in range(int(case.days)):
            now = BEGAN + (day + 1) * DAY
            site.take_in([loans.messages(*loans.between(now - DAY, now))], now)
            settled = np.arange(*loans.between(now - (SETTLED_DAYS + 1) * DAY, now - SETTLED_DAYS * DAY))
            settled = settled[arrives[case.arrive][settled]]
            arrived = np.append(arrived, settled)
            site.receive([_label(loans, item, now) for item in settled.tolist()], now)
            snapshot = site.refresh(now)
            _note_confirmed(snapshot, loans.names, confirmed, day)
            requests = site.ask(now)
            requested += len(requests)
            site.receive(
                [_label(loans, int(one["item_id"]), now, one["request_id"]) for one in requests], now
            )
    of_ranges, of_all = snapshot.groupings[RANGE], snapshot.groupings[ALL]
    order = [of_ranges.groups.index(name) for name in loans.names]
    mean, lower, upper = (
        [*getattr(of_ranges.accuracy, name)[order].tolist(), float(getattr(of_all.accuracy, name)[0])]
        for name in ("mean", "lower", "upper")
    )
    return Found(
        truth=loans.accuracies(now - 30 * DAY, now),
        mean=mean,
        lower=lower,
        upper=upper,
        naive=_naive(loans.correct[arrived]),
        requested=requested,
        arrived=len(arrived),
        confirmed=confirmed,
    )


def _label(loans: Loans, item: int, now: float, request_id: str | None = None) -> dict[str, Any]:
    label = {"model": MODEL, "item_id": str(item), "true_class": loans.true_class(item)}
    label["time"] = datetime.fromtimestamp(now, UTC).isoformat()
    return label if request_id is None else label | {"request_id": request_id}


def _note_confirmed(
    snapshot: ModelSnapshot,
    names: Sequence[str],
    confirmed: list[tuple[EvidenceKind, int] | None],
    day: int,
) -> None:
    found = snapshot.groupings.get(RANGE)
    if found is None or found.evidence is None:
        return
    for kind in LESS_ACCURATE:
        for group in np.flatnonzero(found.evidence.confirmed[kind]).tolist():
            number = names.index(found.groups[group])
            confirmed[number] = confirmed[number] or (kind, day)


def _naive(correct: Flags) -> tuple[float, float, float] | None:
    """Share of correct ones, and the ends of Jeffreys' interval."""
    if not len(correct):
        return None
    right, wrong = float(correct.sum()) + 0.5, float((~correct).sum()) + 0.5
    return float(correct.mean()), *special.betaincinv(right, wrong, [0.025, 0.975]).tolist()


def late_case(days: float) -> dict[str, Case]:
    """All true classes arrive late, and nothing is requested."""
    return {"all, late": Case("all", 0, days=days)}


def some_cases(requests: int, days: float) -> dict[str, Case]:
    """Only accepted loans get a true class; requested labels beside these, or alone."""
    half, by_class = requests // 2, "predicted_class"
    return {
        f"none; {requests} requests": Case("none", requests, days=days),
        f"accepted; {requests} requests": Case("accepted", requests, days=days),
        f"accepted; {half} requests": Case("accepted", half, days=days),
        f"none; {half} requests by class": Case("none", half, by_class, days=days),
        f"accepted; {half} requests by class": Case("accepted", half, by_class, days=days),
    }


def row(name: str, found: Found) -> str:
    """A row of the table."""

    def interval(low: float, high: float, truth: float) -> str:
        return f"{100 * low:.1f} to {100 * high:.1f}{'' if low <= truth <= high else ' (misses)'}"

    truth = found.truth[-1]
    naive = "-" if found.naive is None else interval(*found.naive[1:], truth)
    ends = zip(found.lower[:-1], found.upper[:-1], found.truth[:-1], strict=True)
    hold = sum(low <= true <= high for low, high, true in ends)
    confirmed = ", ".join(f"{n}: {each[0]}, {each[1]}" for n, each in enumerate(found.confirmed) if each)
    width = 100 * (found.upper[-1] - found.lower[-1])
    cells = [name, found.arrived, found.requested, f"{100 * truth:.1f}", naive]
    cells += [interval(found.lower[-1], found.upper[-1], truth), f"{width:.1f}"]
    cells += [f"{hold} of {len(found.truth) - 1}", confirmed or "-"]
    return f"| {' | '.join(map(str, cells))} |"


HEAD = (
    "| true classes arrive of; requests | arrived | requested | accuracy, % | of what arrived, 95% "
    "| estimate, 95% | width, points | ranges that hold | range confirmed: evidence, day |"
)


def main() -> None:
    """Print a row a case and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="(default: 3)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--requests", type=int, default=300, help="labels that are requested (default: 300)")
    parser.add_argument("--days", type=int, help="how much of the stream (default: all of it)")
    parser.add_argument("--file", type=Path, help="a recording, instead of a stream that is made up")
    options = parser.parse_args()
    print(HEAD)
    print("| --- |" + " ---: |" * 3 + " --- |" * 2 + " ---: |" + " --- |" * 2)
    with EmbeddedRedis() as redis:
        for seed in range(options.first, options.first + options.runs):
            rng = np.random.default_rng(seed)
            loans = Loans.recorded(options.file) if options.file else Loans.made_up(rng)
            days = options.days or int((loans.times[-1] - BEGAN) / DAY)
            # Before anything changes, so that what is estimated is not in question.
            cases = late_case(days) | some_cases(options.requests, min(int(0.7 * days), UNCHANGED))
            for name, case in cases.items():
                print(row(name, run(case, loans, redis.url, seed)), flush=True)


if __name__ == "__main__":
    main()
