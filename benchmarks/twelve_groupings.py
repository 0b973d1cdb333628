"""Coverage of the intervals of twelve groupings, of which one asks for labels.

A model has twelve correlated attributes of 2 to 50 values, and a grouping by each. Only one of them asks for
labels. How accurate a prediction is depends on its score, on all of its attributes, and on what they have in
common; nothing of that changes over time. Predictions come steadily, or half of them in bursts: 400 in a row
that share one value of some attribute, so that the mix of a day differs from that of all days. Everything
goes through the service's own consumers, store and rounds, on a real Redis.

The interval of every group is compared with its accuracy over the traffic of the last day, which it is about,
and over all traffic.

    python -m benchmarks.twelve_groupings --traffic bursts --policy thompson --runs 40
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy import special

from benchmarks.flushes import Record
from benchmarks.site import DAY, MODEL, open_site, settings_of
from benchmarks.streams import WIDE
from service.config.settings import Settings
from service.demo.servers import EmbeddedRedis
from service.domain.arrays import Indices
from service.domain.groupings import ALL
from service.monitoring.snapshot import ModelSnapshot
from service.replay.tables import Cell, Table, print_tables
from service.store.labels import LabelEvent

CLASSES = [str(number) for number in range(10)]
ASKS = WIDE.attribute_names[5]
"""The attribute that labels are requested by; it has 8 values."""

POPULATION = 100_000
"""Different predictions, from which those of a run are drawn."""

PARTITIONS = 2
STEPS_A_DAY = 4
PREDICTIONS, LABELS = 4_000, 25
"""Of every step."""

BURST = 400
BEGAN = 1_800_000_000.0
NOMINAL = 0.95


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes:
        bursts: whether half of the predictions come in bursts.
        policy: which group labels are requested of.
        days: how long.
        forgets: whether labels lose weight after a possible change.
        spread: by how much accuracies differ between values of an attribute, beyond their scores, logits.
    """

    bursts: bool
    policy: str
    days: int = 8
    forgets: bool = True
    spread: float = 0.2

    def settings(self, redis_url: str) -> Settings:
        """The configuration, under a prefix of its own."""
        asked = {
            "task": "identification",
            "grouping": ASKS,
            "policy": self.policy,
            # As many a step as the run asks for, whenever it does.
            "budget": {"labels": LABELS * STEPS_A_DAY, "per_days": 1, "burst": 1.0, "reserve": 0.0},
            "max_in_flight": LABELS,
        }
        groupings = {name: {"by": "attribute", "attribute": name} for name in WIDE.attribute_names}
        model = {
            "classes": CLASSES,
            "groupings": groupings,
            "assessments": {"ask": asked},
            "forgetting": {"after_change": self.forgets},
        }
        return settings_of(model, redis_url)


class World:
    """Different predictions: values of their attributes, scores, and how probably each is right.

    Args:
        spread: as of a case.
        rng: random numbers.
    """

    def __init__(self, spread: float, rng: np.random.Generator) -> None:
        self._rng = rng
        self.values = np.stack(WIDE.drawn_values(POPULATION, rng))
        easy, off = np.zeros(POPULATION), np.zeros(POPULATION)
        for column, size in zip(self.values, WIDE.attributes, strict=True):
            easy += rng.normal(0, 0.2, size)[column]
            off += rng.normal(0, spread, size)[column]
        logits = 1.8 + easy + rng.normal(0, 1.2, POPULATION)
        self.scores = np.clip(special.expit(logits), 0.11, 0.9999)
        self.correct = special.expit(special.logit(self.scores) - 0.3 + off)

    def step(self, *, bursts: bool) -> Indices:
        """Predictions of one step, in their order."""
        if not bursts:
            return self._rng.integers(POPULATION, size=PREDICTIONS)
        parts = []
        for _ in range(PREDICTIONS // (2 * BURST)):
            parts.append(self._rng.integers(POPULATION, size=BURST))
            # The value of a random prediction, so that over all days the mix is that of steady traffic.
            column = self.values[self._rng.integers(len(self.values))]
            shared = np.flatnonzero(column == column[self._rng.integers(POPULATION)])
            parts.append(self._rng.choice(shared, size=BURST))
        return np.concatenate(parts)

    def accuracies(self, predictions: Indices) -> dict[str, dict[str, float]]:
        """Accuracy of every group over some predictions, by grouping and name."""
        correct = self.correct[predictions]
        found: dict[str, dict[str, float]] = {ALL: {ALL: float(correct.mean())}}
        for name, column in zip(WIDE.attribute_names, self.values[:, predictions], strict=True):
            there, of = np.unique(column, return_inverse=True)
            means = np.bincount(of, weights=correct) / np.bincount(of)
            found[name] = {f"v{value}": mean for value, mean in zip(there, means.tolist(), strict=True)}
        return found


class Interval(NamedTuple):
    """Of one group at one look."""

    grouping: str
    labels: int
    lower: float
    mean: float
    upper: float
    recent: float
    """Accuracy over the traffic of the last day."""

    overall: float
    """Accuracy over all traffic."""


def run(case: Case, redis_url: str, seed: int) -> Iterator[Interval]:
    """Intervals of all groups once a day, from the second day on.

    Args:
        case: what is measured.
        redis_url: of the Redis that is used.
        seed: of world, predictions, policies and the pools' hash key.
    """
    rng = np.random.default_rng(seed)
    came: list[Indices] = []
    with open_site(case.settings(redis_url), rng, PARTITIONS) as site:
        world = World(case.spread, rng)
        everything = world.accuracies(np.arange(POPULATION))
        for turn in range(case.days * STEPS_A_DAY):
            now = BEGAN + (turn + 1) * DAY / STEPS_A_DAY
            came.append(world.step(bursts=case.bursts))
            site.take_in(_records(world, came[-1], turn, now), now)
            snapshot = site.refresh(now)
            if turn % STEPS_A_DAY == STEPS_A_DAY - 1 and turn >= 2 * STEPS_A_DAY - 1:
                recent = world.accuracies(np.concatenate(came[-STEPS_A_DAY:]))
                yield from _intervals(snapshot, recent, everything)
            site.answer([_answer(one, came, world, rng, now) for one in site.ask(now)], now)


def _records(world: World, predictions: Indices, turn: int, now: float) -> list[list[Record]]:
    """Messages of one step, by partition."""
    records: list[list[Record]] = [[] for _ in range(PARTITIONS)]
    names, length = WIDE.attribute_names, DAY / STEPS_A_DAY
    values = np.strings.add("v", world.values[:, predictions].T.astype(str)).tolist()
    for n, (prediction, row) in enumerate(zip(predictions.tolist(), values, strict=True)):
        message = {
            "model": MODEL,
            "item_id": f"{turn}-{n}",
            "predicted_class": CLASSES[prediction % len(CLASSES)],
            "score": float(world.scores[prediction]),
            "attributes": dict(zip(names, row, strict=True)),
        }
        at = now - length * (1 - n / len(predictions))
        offset = (turn * len(predictions) + n) // PARTITIONS
        records[n % PARTITIONS].append(Record(offset, int(1_000 * at), msgspec.json.encode(message)))
    return records


def _answer(
    message: dict[str, Any], came: list[Indices], world: World, rng: np.random.Generator, now: float
) -> LabelEvent:
    item = message["item_id"]
    turn, n = (int(part) for part in item.split("-"))
    prediction = int(came[turn][n])
    is_right = rng.random() < world.correct[prediction]
    true_class = CLASSES[(prediction + (0 if is_right else 1)) % len(CLASSES)]
    return LabelEvent(message["request_id"], item, "answer", true_class, rng.bytes(8).hex(), now, "bench")


def _intervals(
    snapshot: ModelSnapshot, recent: dict[str, dict[str, float]], everything: dict[str, dict[str, float]]
) -> Iterator[Interval]:
    for name in (*WIDE.attribute_names, ALL):
        there = snapshot.groupings[name]
        bounds = zip(
            there.groups, there.accuracy.lower, there.accuracy.mean, there.accuracy.upper, strict=True
        )
        for group, lower, mean, upper in bounds:
            truth = everything[name].get(group)
            if truth is None:
                continue
            yield Interval(
                name,
                snapshot.outcomes,
                float(lower),
                float(mean),
                float(upper),
                # Of a group without traffic on that day, accuracy over all traffic is what is left.
                recent[name].get(group, truth),
                truth,
            )


def table(case: Case, found: Sequence[Interval], runs: int) -> Table:
    """Coverage by who asked, by number of values, and by number of labels."""
    kinds: dict[str, list[Interval]] = defaultdict(list)
    for one in found:
        if one.grouping == ALL:
            kinds["all traffic"].append(one)
            continue
        kinds["the grouping that asks" if one.grouping == ASKS else "the eleven others"].append(one)
        kinds[f"all twelve, about {round(one.labels, -2)} labels"].append(one)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, intervals in sorted(
        kinds.items(), key=lambda kind: ("about" in kind[0], len(kind[0]), kind[0])
    ):
        lower, mean, upper, recent, overall = np.array([one[2:] for one in intervals]).T
        rows.append(
            (
                name,
                (
                    len(intervals),
                    100 * float(((lower <= recent) & (recent <= upper)).mean()),
                    100 * float((recent < lower).mean()),
                    100 * float((recent > upper).mean()),
                    100 * float(((lower <= overall) & (overall <= upper)).mean()),
                    100 * float((upper - lower).mean()),
                    100 * float((mean - recent).mean()),
                ),
            )
        )
    return Table(
        f"{NOMINAL:.0%} intervals of twelve groupings, of which one asks by {case.policy}; "
        f"{'half of the traffic in bursts' if case.bursts else 'steady traffic'}, {runs} runs",
        "intervals of",
        (
            *("number", "hold, %", "truth below, %", "truth above, %"),
            *("hold that of all days, %", "width, points", "bias, points"),
        ),
        rows,
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traffic", choices=("steady", "bursts"), default="steady")
    parser.add_argument("--policy", default="thompson", help="(default: thompson)")
    parser.add_argument("--days", type=int, default=8, help="(default: 8)")
    parser.add_argument("--runs", type=int, default=40, help="(default: 40)")
    parser.add_argument("--no-forgetting", action="store_true", help="set forgetting.after_change to false")
    parser.add_argument(
        "--spread", type=float, default=0.2, help="of groups, beyond their scores, logits (0.2)"
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    case = Case(
        options.traffic == "bursts",
        options.policy,
        options.days,
        forgets=not options.no_forgetting,
        spread=options.spread,
    )
    began = time.process_time()
    with EmbeddedRedis() as server:
        found = [one for seed in range(options.runs) for one in run(case, server.url, seed)]
    print_tables([table(case, found, options.runs)], as_json=False, as_markdown=options.markdown)
    print(f"{time.process_time() - began:.0f} s CPU")


if __name__ == "__main__":
    main()
