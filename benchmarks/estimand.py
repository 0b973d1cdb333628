"""Coverage of intervals of the accuracy of the next predictions, while a model or its traffic changes.

A stream of predictions in regions, classes and score bins; labels are requested by region, by class or by
both, and placed in the service's ledger. At each look the interval of every group is compared with its
accuracy now: the expected share of right ones among its next predictions, if nothing changes further.

    python -m benchmarks.estimand --scenario abrupt --drop 0.2 --runs 50
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from benchmarks.priority_pools import Items, PriorityPools
from service.config.settings import Settings
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.domain.traffic_counts import TrafficCounts
from service.domain.traffic_tables import tables
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.traffic_windows import TrafficHistory
from service.statistics.policies import POLICIES, Situation
from service.statistics.questions import Question
from service.statistics.tasks import TASKS
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

NOW = 1_800_000_000.0
DAY = 86_400.0
CLASSES = ("a", "b", "c")
REGION, CLASS = "region", "predicted_class"
BINS = 10
BATCH = 25
POOLED = 400  # items of a group
MIDDLES = (np.arange(BINS) + 0.5) / BINS
CHANGED = 0
"""The region that changes."""


@dataclass(frozen=True)
class Scenario:
    """What happens to the stream, and when.

    Attributes:
        kind: "steady", "abrupt", "inputs", "ramp", "healed" or "mix".
        drop: by how much the accuracy of the changed region falls.
        before: labels before it begins.
        after: labels from then on.
        length: labels over which a ramp or a mix moves, or after which a drop is healed.
        askers: groupings that labels are asked by.
        policy: which group each asks about.
        regions: how many.
        batches_per_day: of labels.
        traffic: predictions between two batches.
        traffic_half_life_days: setting of the service.
        draw_half_life_hours: setting of the service.
        prior: setting of the service.
        accuracy: added to the logits of accuracies; if given, all regions are equally certain.
        run_length: setting of the service.
        window_days: length of the newest epoch of traffic; None for traffic without epochs.
    """

    kind: str
    drop: float = 0.2
    before: int = 600
    after: int = 1_000
    length: int = 300
    askers: tuple[str, ...] = (REGION,)
    policy: str = "random"
    regions: int = 4
    batches_per_day: float = 4.0
    traffic: int = 10_000
    traffic_half_life_days: float | None = 7.0
    draw_half_life_hours: float | None = 24.0
    prior: str = "learned"
    accuracy: float = 0.0
    run_length: int = 500
    window_days: float | None = 0.25


class World:
    """Shares and accuracies of cells [regions, classes, bins], by the labels since the change began.

    Args:
        scenario: what happens.
        rng: random numbers.
    """

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self.scenario = scenario
        regions = scenario.regions
        shape = (regions, len(CLASSES), BINS)
        shares = np.linspace(1.6, 0.4, regions) / regions
        if scenario.kind == "mix":
            shares = np.append(0.5, np.full(regions - 1, 0.5 / (regions - 1)))
        self.shares = shares / shares.sum()
        skill = (
            rng.uniform(2.0, 5.0, (regions, 1, 1))
            if scenario.accuracy == 0
            else np.full((regions, 1, 1), 5.0)
        )
        uneven = rng.uniform(0.5, 1.5, shape)
        of_class = rng.dirichlet(np.full(len(CLASSES), 3.0), regions)[:, :, None]
        within = MIDDLES**skill * uneven
        self.within = of_class * within / within.sum(axis=-1, keepdims=True)
        off = rng.normal(0, 0.3, (regions, 1, 1)) + rng.normal(0, 0.3, (1, len(CLASSES), 1))
        off = off + rng.normal(0, 0.15, shape) + scenario.accuracy
        self.correct = special.expit(special.logit(MIDDLES) + off)

    def extent(self, since: float) -> float:
        """How far the change has gone, from 0 to 1."""
        kind, length = self.scenario.kind, self.scenario.length
        if kind == "steady" or since <= 0:
            return 0.0
        if kind in ("ramp", "mix"):
            return min(since / length, 1.0)
        if kind == "healed":
            return float(since <= length)
        return 1.0

    def at(self, since: float) -> tuple[np.ndarray, np.ndarray]:
        """Shares and accuracies of all cells then."""
        extent, kind = self.extent(since), self.scenario.kind
        shares, within, correct = self.shares, self.within, self.correct
        if extent and kind == "mix":
            first = 0.5 - 0.4 * extent
            shares = np.append(first, (1 - first) * shares[1:] / shares[1:].sum())
        elif extent and kind == "inputs":
            within = within.copy()
            within[CHANGED] = self._harder(extent)
        elif extent:
            correct = correct.copy()
            accuracy = (within[CHANGED] * correct[CHANGED]).sum()
            correct[CHANGED] *= 1 - extent * self.scenario.drop / accuracy
        return shares[:, None, None] * within, correct

    def _harder(self, extent: float) -> np.ndarray:
        """Inputs of the changed region whose scores are lower, so that accuracy falls as wanted."""
        within, correct = self.within[CHANGED], self.correct[CHANGED]
        wanted = (within * correct).sum() - extent * self.scenario.drop
        low, high = 0.0, 30.0
        moved = within
        for _ in range(40):
            middle = (low + high) / 2
            moved = within * np.exp(-middle * MIDDLES)
            moved = moved / moved.sum(axis=-1, keepdims=True) * within.sum(axis=-1, keepdims=True)
            low, high = (middle, high) if (moved * correct).sum() > wanted else (low, middle)
        return np.asarray(moved)


@dataclass
class History:
    """What came: traffic of every stretch between two batches, and the labels."""

    times: list[float] = field(default_factory=list)
    counts: list[np.ndarray] = field(default_factory=list)
    correct: list[np.ndarray] = field(default_factory=list)


def settings_of(scenario: Scenario) -> Settings:
    """The configuration of the service."""
    budget = {"labels": 100_000}
    assessments = {
        f"by_{name}": {
            "grouping": name,
            "budget": budget,
            "task": "identification",
            "policy": scenario.policy,
        }
        for name in scenario.askers
    }
    model: dict[str, Any] = {
        "classes": CLASSES,
        "groupings": {REGION: {"by": "attribute", "attribute": REGION}, CLASS: {"by": "predicted_class"}},
        "assessments": assessments,
        "traffic_half_life_days": scenario.traffic_half_life_days,
        "draw_half_life_hours": scenario.draw_half_life_hours,
        "prior": scenario.prior,
        "forgetting": {"run_length": scenario.run_length},
    }
    return Settings.model_validate({"models": {"m": model}})


class Watched:
    """A stream that is watched by the service's own path, but for Kafka and Redis."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self.scenario, self.rng = scenario, rng
        self.world = World(scenario, rng)
        settings = settings_of(scenario)
        self.model, self.space = settings.models["m"], settings.cell_space("m")
        self.combinations = [(str(n),) for n in range(scenario.regions)]
        self.ledger = OutcomeLedger(self.space)
        self.history = History()
        self.labels = 0
        self.step = 0
        shape = (scenario.regions, len(CLASSES), BINS)
        places = np.arange(np.prod(shape)).reshape(shape)
        self.groups = {
            REGION: np.broadcast_to(np.arange(shape[0])[:, None, None], shape).ravel(),
            CLASS: np.broadcast_to(np.arange(shape[1])[None, :, None], shape).ravel(),
        }
        self.cells = np.unravel_index(places.ravel(), shape)
        self.pools = PriorityPools(self.model.draw_decay_per_second, POOLED, rng)

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return NOW + self.step / self.scenario.batches_per_day * DAY

    @property
    def since(self) -> float:
        """Labels since the change began; negative before."""
        return self.labels - self.scenario.before

    def come(self) -> None:
        """The predictions of a stretch."""
        self.step += 1
        # What comes before the batch that is counted next is of after the change, where it has begun.
        shares, correct = self.world.at(self.since + BATCH)
        self.history.times.append(self.now - 0.5 / self.scenario.batches_per_day * DAY)
        self.history.counts.append(self.rng.multinomial(self.scenario.traffic, shares.ravel() / shares.sum()))
        self.history.correct.append(correct.ravel())
        self.pool()

    def pool(self) -> None:
        """The predictions of the latest stretch come into the pools of the groupings that ask."""
        counts = self.history.counts[-1]
        cells = np.repeat(np.arange(len(counts)), counts)
        length = DAY / self.scenario.batches_per_day
        at = self.history.times[-1] + length * (self.rng.random(len(cells)) - 0.5)
        places = cells + len(counts) * (len(self.history.counts) - 1)
        for grouping in self.scenario.askers:
            groups = self.groups[grouping][cells]
            for group in np.unique(groups).tolist():
                inside = groups == group
                self.pools.add((grouping, group), Items(places[inside], at[inside]), NOW)

    def decayed(self, rate: float) -> np.ndarray:
        """Weights of the stretches [t] under exponential decay.

        Args:
            rate: of decay, 1/s.
        """
        return np.exp(-rate * (self.now - np.array(self.history.times)))

    def index(self) -> GroupIndex:
        """Groups now, and their traffic by epochs whose ages double."""
        counts = np.array(self.history.counts)
        weights = self.decayed(self.model.traffic_decay_per_second) @ counts
        traffic = self.tables(counts.sum(axis=0), weights)
        if self.scenario.window_days is None:
            return GroupIndex(self.space, traffic, self.ledger.cells)
        age = (self.now - np.array(self.history.times)) / DAY
        ends = [self.scenario.window_days]
        while ends[-1] < age.max():
            ends.append(2 * ends[-1])
        begins = [self.now - end * DAY for end in ends[:-1]] + [-np.inf]
        epoch = np.searchsorted(ends, age)
        parts = tuple(TrafficCounts.of(self.tables(counts[epoch == e].sum(axis=0))) for e in range(len(ends)))
        return GroupIndex(self.space, traffic, self.ledger.cells, TrafficHistory(np.array(begins), parts))

    def tables(self, counts: np.ndarray, weights: np.ndarray | None = None) -> Traffic:
        """Traffic that is counted in tables."""
        traffic = Traffic(tables(self.space))
        traffic.landmark = self.now
        shape = (self.scenario.regions, len(CLASSES), BINS)
        traffic.tables[REGION].restore([str(n) for n in range(shape[0])], np.zeros(shape[0]))
        for attribute, table in traffic.tables.items():
            for columns, block in table.blocks.items():
                rows = slice(0, shape[0] if attribute else 1)
                kept = {"class_bins": 0, "bins": 1, "classes": 2}[columns]
                for into, values in (
                    (block.counts, counts),
                    (block.weights, weights),
                    (block.score_sums, weights),
                ):
                    if values is None or not into.shape[1]:
                        continue
                    cells = values.reshape(shape)
                    if into is block.score_sums:
                        cells = cells * MIDDLES
                    cells = cells.sum(axis=kept).reshape(-1 if kept else 1, into.shape[1])
                    into[rows] = cells
        return traffic

    def draw(self, grouping: str, wanted: np.ndarray) -> None:
        """Labels of predictions from the pools of some groups."""
        entries = list[OutcomeEntry]()
        for group, count in zip(*np.unique(wanted, return_counts=True), strict=True):
            drawn = self.pools.draw((grouping, int(group)), int(count))
            entries += [
                self.answered(place, at, grouping, int(group))
                for place, at in zip(drawn.places.tolist(), drawn.at.tolist(), strict=True)
            ]
        self.ledger.fold(entries)
        self.ledger.place()

    def answered(self, place: int, at: float, grouping: str, group: int) -> OutcomeEntry:
        """The label of one prediction.

        Args:
            place: of the stretch and cell that it came in.
            at: when it came.
            grouping: that it was drawn for.
            group: its number.
        """
        step, cell = divmod(place, len(self.groups[REGION]))
        region, predicted, bin_ = (int(codes[cell]) for codes in self.cells)
        right = self.rng.random() < self.history.correct[step][cell]
        self.labels += 1
        number = self.labels
        name = str(group) if grouping == REGION else CLASSES[group]
        fact = Fact(
            f"r{number}",
            f"i{number}",
            grouping,
            name,
            CLASSES[predicted],
            float(MIDDLES[bin_]),
            {REGION: str(region)},
            at,
            self.now,
        )
        label = CLASSES[predicted] if right else CLASSES[(predicted + 1) % len(CLASSES)]
        return OutcomeEntry((1, number), (1, number), f"by_{grouping}", fact, LabelFact(label, self.now, ""))

    def truth(self) -> dict[str, np.ndarray]:
        """Accuracy of every group now."""
        shares, correct = (values.ravel() for values in self.world.at(max(self.since, -1e9)))
        return truths(self.groups, shares, correct)

    def believed(self) -> dict[str, Any]:
        """Snapshots of all groupings now."""
        return assess_groupings(
            settings=self.model,
            index=self.index(),
            probability_sums={},
            ledger=self.ledger,
            at=self.now,
        )

    def ask(self, believed: dict[str, Any] | None) -> None:
        """A batch of labels: by turns, if several ask."""
        askers = self.scenario.askers
        for turn, grouping in enumerate(askers):
            count = len(range(turn, BATCH, len(askers)))
            size = int(self.groups[grouping].max()) + 1
            if self.scenario.policy == "random" or believed is None:
                wanted = self.rng.integers(size, size=count)
            else:
                wanted = self.named(believed[grouping].beliefs, count)
            self.draw(grouping, wanted)

    def named(self, beliefs: Any, count: int) -> np.ndarray:
        """Groups that the policy asks about, step by step."""
        task = TASKS["identification", "accuracy"](Question(beliefs.cells))
        asking, chosen = beliefs.accuracy_beliefs(), list[int]()
        while len(chosen) < count:
            situation = Situation(asking, beliefs.shares[None], beliefs.shares[None] > 0)
            group = POLICIES[self.scenario.policy]().choose(task, situation, self.rng)[0]
            asking.expect(group[:1])
            chosen.append(int(group[0]))
        return np.array(chosen)


def truths(groups: dict[str, np.ndarray], shares: np.ndarray, correct: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy of every group by grouping, and of all traffic."""
    found = {
        name: np.bincount(of, weights=shares * correct) / np.bincount(of, weights=shares)
        for name, of in groups.items()
    }
    return found | {ALL: np.atleast_1d((shares * correct).sum() / shares.sum())}


def kinds() -> dict[str, tuple[str, slice]]:
    """Kinds of groups by name: grouping, and which of its groups."""
    return {
        "changed": (REGION, slice(CHANGED, CHANGED + 1)),
        "others": (REGION, slice(CHANGED + 1, None)),
        "classes": (CLASS, slice(None)),
        "all": (ALL, slice(None)),
    }


def run(scenario: Scenario, rng: np.random.Generator, looks: range) -> Iterator[Any]:
    """Labels since the change, kind of group, ends of intervals, truths, means and effective labels."""
    watched = Watched(scenario, rng)
    snapshot: dict[str, Any] | None = None
    while watched.labels < scenario.before + scenario.after:
        watched.come()
        watched.ask(snapshot)
        due = watched.since in looks
        if due or scenario.policy != "random":
            snapshot = watched.believed()
        if due and snapshot is not None:
            truth = watched.truth()
            for kind, (grouping, which) in kinds().items():
                there = snapshot[grouping]
                yield (
                    watched.since,
                    kind,
                    there.accuracy.lower[which],
                    there.accuracy.upper[which],
                    truth[grouping][which],
                    there.accuracy.mean[which],
                    there.beliefs.labels[which],
                )


def measure(scenario: Scenario, runs: int, looks: range, seed: int = 0) -> dict[str, dict[int, np.ndarray]]:
    """Of every kind and look: intervals, held, truth below, truth above, width, bias, effective labels."""
    found: dict[str, dict[int, np.ndarray]] = defaultdict(lambda: defaultdict(lambda: np.zeros(7)))
    for n in range(runs):
        for since, kind, lower, upper, truth, mean, labels in run(
            scenario, np.random.default_rng([seed, n]), looks
        ):
            row = [
                len(truth),
                ((lower <= truth) & (truth <= upper)).sum(),
                (truth < lower).sum(),
                (truth > upper).sum(),
                (upper - lower).sum(),
                (mean - truth).sum(),
                labels.sum(),
            ]
            found[kind][since] += row
            found["together"][since] += row
    return found


STRETCHES = ((-400, 0), (1, 100), (101, 200), (201, 400), (401, 600), (601, 1000))
"""Labels since the change, by which looks are put together."""


def table(found: dict[str, dict[int, np.ndarray]]) -> str:
    """A row for every kind of groups: coverage (truth below, above; width, bias), by stretches of labels."""
    lines = ["| groups | " + " | ".join(f"{a} to {b}" for a, b in STRETCHES) + " |"]
    lines.append("| --- " * (1 + len(STRETCHES)) + "|")
    for kind, looks in found.items():
        row = []
        for begin, end in STRETCHES:
            total = sum(values for since, values in looks.items() if begin <= since <= end)
            if isinstance(total, int):
                row.append("")
                continue
            share = 100 * total[1:] / total[0]
            row.append(f"{share[0]:.1f} ({share[1]:.1f}, {share[2]:.1f}; {share[3]:.1f}, {share[4]:+.1f})")
        lines.append(f"| {kind} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="abrupt")
    parser.add_argument("--drop", type=float, default=0.2)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--askers", default=REGION)
    parser.add_argument("--policy", default="random")
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument(
        "--draw-hours", type=float, default=24.0, help="draw_half_life_hours; 0 for null (24)"
    )
    parser.add_argument("--prior", default="learned")
    parser.add_argument("--after", type=int, default=1000)
    parser.add_argument("--window", type=float, default=0.25)
    parser.add_argument("--run-length", type=int, default=500)
    parser.add_argument("--before", type=int, default=600)
    options = parser.parse_args()
    scenario = Scenario(
        options.scenario,
        options.drop,
        askers=tuple(options.askers.split(",")),
        policy=options.policy,
        draw_half_life_hours=options.draw_hours or None,
        prior=options.prior,
        after=options.after,
        before=options.before,
        run_length=options.run_length,
        window_days=options.window or None,
    )
    began = time.process_time()
    found = measure(scenario, options.runs, range(-options.every, options.after + 1, options.every))
    print(table(found))
    print(f"{time.process_time() - began:.1f} s CPU")


if __name__ == "__main__":
    main()
