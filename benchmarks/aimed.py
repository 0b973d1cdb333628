"""How soon evidence confirms that a group got worse, with labels that drift aims and without.

A model is watched as the service does it, without Kafka and Redis: traffic is counted and marked, the
assessment's policy names groups by what is believed of them, drift names its share of them, and every group's
labels are evidence as they come (`log_e_below`). One group's input gets worse; its scores fall with its
accuracy, or, in the last row, only its accuracy does, which no score tells.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from service.config.settings import Settings
from service.domain.arrays import Floats
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_marks import Mark, Timeline, open_mark
from service.domain.traffic_tables import tables
from service.monitoring.acquisition import acquisition_state, select_groups
from service.monitoring.drift import model_drift
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.suspected_groups import Aim
from service.monitoring.traffic_windows import ComparedTraffic, compared_traffic, traffic_windows
from service.replay.tables import Table, print_tables
from service.statistics.drift import drift_label_shares
from service.statistics.e_processes import log_e_below
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

HOUR = 3_600.0
BEGAN = 1_800_000_000.0
PREDICTIONS_PER_HOUR = 20_000
LABELS_PER_DAY = 100
HOURS_A_ROUND = 2
HEALTHY_DAYS = 2
LONGEST_DAYS = 10
THRESHOLD = 0.9
ALPHA = 0.05
BINS = 10

HEALTHY_SCORES = (18.0, 1.0)
WORSE_SCORES = (7.0, 2.0)
WORSE_ACCURACY = 0.75


class Question(NamedTuple):
    """What is asked, and how the fault shows."""

    name: str
    groups: int
    assessment: dict[str, Any]
    scores_fall: bool


QUESTIONS = (
    Question("20 groups, estimation", 20, {"task": "estimation"}, True),
    Question("100 groups, estimation", 100, {"task": "estimation"}, True),
    Question("100 groups, the least accurate", 100, {"task": "identification"}, True),
    Question("100 groups, estimation, scores stay", 100, {"task": "estimation"}, False),
)


@dataclass(frozen=True)
class Found:
    """Results of one run.

    Attributes:
        hours: from the fault to the alarm; those of the whole run without one.
        labels: of the group that got worse, since the fault.
        drifted: from the fault until the group had drifted; NaN if it never did.
    """

    hours: float
    labels: int
    drifted: float


class Watched:
    """A model of some groups, one of which gets worse.

    Args:
        question: what is asked of it.
        label_share: that drift aims.
        seed: of everything random.
    """

    def __init__(self, question: Question, label_share: float, seed: int) -> None:
        self._question = question
        self._rng = np.random.default_rng(seed)
        self._names = [f"r{g:03d}" for g in range(question.groups)]
        asked = {"grouping": "region", "budget": {"labels": LABELS_PER_DAY, "per_days": 1}}
        settings = Settings.model_validate(
            {
                "models": {
                    "m": {
                        "classes": ["right", "wrong"],
                        "score_bins": BINS,
                        "groupings": {"region": {"by": "attribute", "attribute": "region"}},
                        "assessments": {"ask": asked | question.assessment},
                        "drift": {"label_share": label_share},
                        "traffic_half_life_days": None,
                    }
                },
            }
        )
        self._model, self._space = settings.models["m"], settings.cell_space("m")
        self._ledger = OutcomeLedger(self._space)
        self._counts = np.zeros((question.groups, BINS), np.int64)
        self._marks: dict[Mark, TrafficCounts] = {}
        self._correct, self._wrong = np.zeros(question.groups), np.zeros(question.groups)
        self._entries = 0
        self._now = BEGAN
        self._middles = (np.arange(BINS) + 0.5) / BINS
        self._last = -np.inf, TrafficCounts.of(self._traffic())

    def run(self) -> Found:
        """Days of health, then the fault, until there is evidence of it."""
        drifted = np.nan
        for _ in range(HEALTHY_DAYS * 24 // HOURS_A_ROUND):
            self._round(worse=False)
        before = self._correct[0] + self._wrong[0]
        hours = 0
        while hours < LONGEST_DAYS * 24:
            hours += HOURS_A_ROUND
            if self._round(worse=True) and np.isnan(drifted):
                drifted = hours
            if self._evident():
                break
        return Found(hours, int(self._correct[0] + self._wrong[0] - before), drifted)

    def _evident(self) -> bool:
        one = (self._correct[:1], self._wrong[:1], np.array([THRESHOLD]))
        return bool(log_e_below(*one)[0] >= -np.log(ALPHA))

    def _shares(self, group: int, *, worse: bool) -> Floats:
        """Of the group's predictions by score bin."""
        shape = WORSE_SCORES if worse and group == 0 and self._question.scores_fall else HEALTHY_SCORES
        return np.diff(stats.beta(*shape).cdf(np.linspace(0, 1, BINS + 1)))

    def _round(self, *, worse: bool) -> bool:
        """Traffic comes, labels are asked and answered; whether the group has drifted."""
        self._now += HOURS_A_ROUND * HOUR
        size = HOURS_A_ROUND * PREDICTIONS_PER_HOUR // self._question.groups
        fresh = np.array([self._shares(g, worse=worse) for g in range(self._question.groups)])
        self._counts += self._rng.multinomial(size, fresh)
        index = GroupIndex(self._space, self._traffic(), self._ledger.cells)
        groupings = assess_groupings(
            settings=self._model,
            index=index,
            probability_sums={},
            ledger=self._ledger,
            at=self._now,
        )
        drift = model_drift(
            index=index,
            settings=self._model.drift,
            compared=self._compared(TrafficCounts.of(index.traffic)),
            groupings=groupings,
            now=self._now,
        )
        drift_of_regions = None if drift is None else drift.groupings["region"]
        shares = (
            None
            if drift_of_regions is None
            else drift_label_shares(drift_of_regions.score, drift_of_regions.drifted)
        )
        aim = None if shares is None else Aim(shares, self._model.drift.label_share)
        stands = acquisition_state(
            self._model.assessments["ask"], groupings["region"], np.zeros(self._question.groups)
        )
        if stands is None:
            raise RuntimeError("an assessment of accuracy can always ask")
        wanted = LABELS_PER_DAY * HOURS_A_ROUND // 24
        available = stands.situation.available
        named = [] if aim is None else aim.groups(available[0], wanted, self._rng)
        named += select_groups(stands, available, wanted - len(named), self._rng)
        for group in named:
            self._answer(group, fresh[group], worse=worse)
        self._ledger.place(votes_missing=False)
        return drift_of_regions is not None and bool(drift_of_regions.drifted[0])

    def _compared(self, counts: TrafficCounts) -> ComparedTraffic | None:
        """The reference and recent traffic; all traffic of a round arrives at its end."""
        since, before = self._last
        self._marks[Mark(np.nextafter(since, np.inf), self._now, before.predictions)] = before
        self._last = self._now, counts
        timeline = Timeline({0: (*self._marks, open_mark(self._now, counts.predictions))})
        windows = traffic_windows(timeline, None, self._model.drift, now=self._now)
        if windows is None:
            return None
        marks = {time: timeline.marks_at(time) or {} for time in windows.times}
        marked = {time: self._marks.get(of[0], counts) for time, of in marks.items()}
        return compared_traffic(windows, marked, counts, now=self._now)

    def _answer(self, group: int, shares: Floats, *, worse: bool) -> None:
        """A label of an item of the group, drawn evenly of what came in this round."""
        score = float(self._middles[self._rng.choice(BINS, p=shares / shares.sum())])
        # As the scores say; of the group that got worse all are wrong more often.
        promised = float(shares @ self._middles / shares.sum())
        right = score * WORSE_ACCURACY / promised if worse and group == 0 else score
        correct = bool(self._rng.random() < right)
        self._correct[group] += correct
        self._wrong[group] += not correct
        self._entries += 1
        name = self._names[group]
        fact = Fact(
            request_id=f"r{self._entries}",
            item_id=f"i{self._entries}",
            grouping="region",
            group=name,
            predicted_class="right",
            score=score,
            attributes={"region": name},
            predicted_at=self._now,
            requested_at=self._now,
        )
        position = (1, self._entries)
        label = LabelFact("right" if correct else "wrong", self._now, "")
        self._ledger.fold([OutcomeEntry(position, position, "ask", fact, label)])

    def _traffic(self) -> Traffic:
        traffic = Traffic(tables(self._space))
        traffic.landmark = self._now
        regions = traffic.tables["region"]
        regions.restore(self._names, np.zeros(len(self._names)))
        by_region, whole = regions.blocks["bins"], traffic.whole
        rows = slice(0, len(self._names))
        by_region.counts[rows] = self._counts
        by_region.weights[rows] = self._counts
        by_region.score_sums[rows] = self._counts * self._middles
        # All are predicted to be of the first class.
        whole.counts[0, :BINS] = self._counts.sum(axis=0)
        whole.weights[0, :BINS] = self._counts.sum(axis=0)
        whole.score_sums[0, :BINS] = self._counts.sum(axis=0) * self._middles
        return traffic


def of_questions(runs: int) -> Table:
    """Medians over the runs, by what is asked, with and without aim."""
    rows: list[tuple[str, tuple[float | None, ...]]] = []
    for question in QUESTIONS:
        figures: list[float | None] = []
        for share in (0.0, 0.2):
            found = [Watched(question, share, seed).run() for seed in range(runs)]
            figures += [
                float(np.median([one.hours for one in found])),
                float(np.median([one.labels for one in found])),
            ]
        drifted = [one.drifted for one in found if not np.isnan(one.drifted)]
        figures += [float(np.median(drifted)) if drifted else None]
        rows.append((question.name, tuple(figures)))
    title = (
        f"hours from a fault to the evidence of it, and labels of the group since: median of {runs} runs, "
        f"{LABELS_PER_DAY} labels a day, accuracy of one group from 0.95 to {WORSE_ACCURACY}, "
        f"threshold {THRESHOLD}, alpha {ALPHA}; broken off after {24 * LONGEST_DAYS} hours"
    )
    columns = ("hours, policy alone", "labels", "hours, drift aims 20%", "labels", "hours until drifted")
    return Table(title, "asked", columns, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure how soon evidence comes, with aimed labels.")
    parser.add_argument("--runs", type=int, default=20, help="of every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    print_tables([of_questions(options.runs)], as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
