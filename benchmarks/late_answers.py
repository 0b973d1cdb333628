"""Late wrong answers: what the service announces of a model that does not change, and whether intervals hold.

People confirm a right prediction soon, and answer days later when it is wrong. Labels stand in the service's
ledger, requests without an answer are open, and every day the service's own functions evaluate both: its
evidence (`model_evidence`), its search for changes (`weigh_model_labels`), and its intervals
(`assess_groupings`). Every group is as accurate as its scores say, and stays so.

    python -m benchmarks.late_answers --accuracy 0.93 0.95 --runs 200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.config.settings import Settings
from service.domain.arrays import Flags, Floats
from service.domain.cells import definitions
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.anytime_tests import GroupingEvidence
from service.monitoring.group_index import GroupIndex
from service.monitoring.model_evidence import model_evidence
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.weighted_labels import weigh_model_labels
from service.replay.tables import Cell, Table, print_tables
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact
from service.store.requests import OpenRequest

GROUPS, PER_DAY, DAYS = 4, 20, 60
"""Requests of every group a day."""

DAY = 86_400.0
BEGAN = 1_800_000_000.0
MARGIN = 0.03
"""How far every group is above `alerts.min_accuracy`."""

COMPARED_ON = range(20, DAYS + 1, 10)
"""Days on which intervals are compared with the truth."""


class Delays(NamedTuple):
    """Days from a request to its answer."""

    right: float
    wrong: float


class Day(NamedTuple):
    """What the service says on one day."""

    changed: bool
    """Whether evidence confirms a change."""

    confirmed: bool
    """Whether evidence confirms anything."""

    relearned: bool
    """Whether a change is reported after which older labels have lost weight."""

    held: list[bool]
    """Of every group, whether its interval holds its accuracy; empty on most days."""


@dataclass(frozen=True)
class Requests:
    """Requests of groups in turn, and their answers [n].

    Attributes:
        definition: what the grouping is by.
        accuracy: of every group, and the score of every prediction.
        correct: whether the prediction is right.
        requested_at: seconds since the epoch.
        answered_at: the same.
    """

    definition: bytes
    accuracy: float
    correct: Flags
    requested_at: Floats
    answered_at: Floats

    @classmethod
    def drawn(cls, accuracy: float, delays: Delays, rng: np.random.Generator) -> Requests:
        """Those of a run."""
        correct = rng.random(DAYS * PER_DAY * GROUPS) < accuracy
        requested_at = BEGAN + np.arange(len(correct)) * DAY / (PER_DAY * GROUPS)
        answered_at = requested_at + DAY * np.where(correct, delays.right, delays.wrong)
        definition = definitions(settings_of(accuracy).cell_space("m"))["site"]
        return cls(definition, accuracy, correct, requested_at, answered_at)

    def entry(self, n: int, place: int) -> OutcomeEntry:
        """The label of a request, at its place in the stream."""
        at, site = float(self.requested_at[n]), f"{n % GROUPS}"
        fact = Fact(
            request_id=f"r{n}",
            item_id=f"i{n}",
            grouping="site",
            group=site,
            predicted_class="yes",
            score=self.accuracy,
            attributes={"site": site},
            predicted_at=at,
            requested_at=at,
            definition=self.definition,
        )
        given = LabelFact("yes" if self.correct[n] else "no", float(self.answered_at[n]), "")
        return OutcomeEntry((1, place), (1, place), "ask", fact, given)

    def open(self, now: float) -> dict[str, OpenRequest]:
        """Those that wait for their answers, by id."""
        waiting = np.flatnonzero((self.requested_at <= now) & (self.answered_at > now)).tolist()
        return {f"r{n}": self._open(n) for n in waiting}

    def _open(self, n: int) -> OpenRequest:
        site, at = f"{n % GROUPS}", float(self.requested_at[n])
        return OpenRequest("ask", site, {"site": site}, "yes", self.accuracy, 1, at)


def settings_of(accuracy: float, *, forgets: bool = True) -> Settings:
    """The configuration of the service.

    Args:
        accuracy: of every group.
        forgets: whether labels lose weight after a change.
    """
    model = {
        "classes": ("no", "yes"),
        "groupings": {"site": {"by": "attribute", "attribute": "site"}},
        "assessments": {"ask": {"grouping": "site", "budget": {"labels": 1_000_000}}},
        "alerts": {"min_accuracy": accuracy - MARGIN},
        "forgetting": {"after_change": forgets},
    }
    return Settings.model_validate({"models": {"m": model}})


def _traffic(settings: Settings, score: float) -> Traffic:
    """Even traffic of all groups, with one score."""
    space = settings.cell_space("m")
    traffic = Traffic(tables(space))
    traffic.landmark = BEGAN
    traffic.tables["site"].restore([f"{group}" for group in range(GROUPS)], np.zeros(GROUPS))
    score_bin = int(space.bins(np.array([score]))[0])
    whole, by_site = traffic.whole, traffic.tables["site"].block("bins")
    for block, rows, column in ((whole, 1, space.bin_count + score_bin), (by_site, GROUPS, score_bin)):
        block.counts[:rows, column] = 1_000 // rows
        block.weights[:rows, column] = 1_000 // rows
        block.score_sums[:rows, column] = 1_000 // rows * score
    return traffic


def run(requests: Requests, settings: Settings) -> Iterator[Day]:
    """What the service says, day by day."""
    model, space = settings.models["m"], settings.cell_space("m")
    traffic, ledger = _traffic(settings, requests.accuracy), OutcomeLedger(space)
    order = np.argsort(requests.answered_at, kind="stable")
    known_evidence: Mapping[str, GroupingEvidence] = {}
    done = 0
    for day in range(1, DAYS + 1):
        now = BEGAN + day * DAY
        until = int(np.searchsorted(requests.answered_at[order], now, "right"))
        ledger.fold([requests.entry(int(order[place]), place + 1) for place in range(done, until)])
        ledger.place()
        done, index = until, GroupIndex(space, traffic, ledger.cells)
        known_evidence = model_evidence(
            settings=model,
            index=index,
            ledger=ledger,
            open_requests=requests.open(now),
            reference=None,
            checkpoint=None,
            before=known_evidence,
        )
        known = weigh_model_labels(model, index, ledger, now=now)
        held: list[bool] = []
        if day in COMPARED_ON:
            there = assess_groupings(
                settings=model,
                index=index,
                probability_sums={},
                ledger=ledger,
                at=now,
                weighted=known,
            )["site"]
            truth = requests.accuracy
            held = ((there.accuracy.lower <= truth) & (truth <= there.accuracy.upper)).tolist()
        yield Day(
            changed=any(bool(one.changed.any()) for one in known_evidence.values()),
            confirmed=any(bool(one.alarming.any()) for one in known_evidence.values()),
            relearned=any(map(bool, known.change_points.values())),
            held=held,
        )


def _table(accuracies: Sequence[float], delays: Sequence[Delays], runs: int, *, forgets: bool) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for accuracy in accuracies:
        for delay in delays:
            rng = np.random.default_rng(1)
            settings = settings_of(accuracy, forgets=forgets)
            found = [list(run(Requests.drawn(accuracy, delay, rng), settings)) for _ in range(runs)]
            ever = [[any(column) for column in list(zip(*days, strict=True))[:3]] for days in found]
            held = [one for days in found for day in days for one in day.held]
            name = f"{accuracy}, wrong answers after {delay.wrong:g} d"
            shares = (100 * np.mean(ever, axis=0)).tolist()
            rows.append((name, (*shares, 100 * float(np.mean(held)))))
    return Table(
        f"runs in which the service ever says so of a healthy model, %: {GROUPS} groups, {PER_DAY} requests "
        f"of each a day, {DAYS} days, right answers after {delays[0].right:g} d, {runs} runs",
        "accuracy",
        ("change confirmed", "anything confirmed", "older labels lose weight", "intervals that hold"),
        rows,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accuracy", type=float, nargs="+", default=[0.93, 0.95])
    parser.add_argument("--right-days", type=float, default=1.0, help="(default: 1)")
    parser.add_argument("--wrong-days", type=float, nargs="+", default=[1.0, 7.0], help="(default: 1 7)")
    parser.add_argument("--runs", type=int, default=200, help="(default: 200)")
    parser.add_argument("--no-forgetting", action="store_true", help="set forgetting.after_change to false")
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    delays = [Delays(options.right_days, wrong) for wrong in options.wrong_days]
    table = _table(options.accuracy, delays, options.runs, forgets=not options.no_forgetting)
    print_tables([table], as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
