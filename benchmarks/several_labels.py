"""Do intervals of groups hold if people err, and items get further labels as `labels_per_item` says?

Through the service's own path from outcomes to estimates: weights of labels, what is learned of people,
imputations and the learned prior. One region is worse than the others. docs/annotators.md explains the
figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from service.config.labels_per_item import LabelsPerItem
from service.config.model import ModelSettings
from service.config.settings import Settings
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import CellSpace
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.domain.traffic_tables import tables
from service.monitoring.group_index import GroupIndex
from service.monitoring.grouping_snapshot import GroupingSnapshot
from service.monitoring.label_truth import LearnedTruth, learn_truth
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.replay.tables import Cell, Table, print_tables
from service.replay.workers import workers
from service.store.outcome_entries import OutcomeEntry
from service.store.records import Fact, LabelFact

REGION: Final = "region"
BINS: Final = 10
TRAFFIC: Final = 20_000
NOW: Final = 1e9
USUAL: Final = LabelsPerItem(most=3)


@dataclass(frozen=True)
class World:
    """A model in regions, and people who label; what is not said is usual."""

    classes: int = 3
    regions: int = 5
    worse: float = 2.0  # logits by which the first region is less accurate
    labels: int = 60  # items per region
    people: int = 12
    ability: float = 3.0  # 3 knows 91% of items of mean difficulty, and guesses the others
    unlike: float = 0.5  # standard deviation of abilities
    difficulty: float = 0.7  # standard deviation of the log of difficulties
    harder: float = 1.0  # by so much are wrongly predicted items more difficult
    guessing: float = 0.0  # share of people who guess
    policy: LabelsPerItem = USUAL


WORLDS: Final[Mapping[str, World]] = {
    "usual": World(),
    "2 classes": World(classes=2),
    "20 classes": World(classes=20),
    "no region is worse": World(worse=0.0),
    "20 labels per region": World(labels=20),
    "20 regions": World(regions=20, labels=20),
    "excellent people": World(ability=6.0, harder=0.5),
    "poor people": World(ability=2.0),
    "a sixth of the people guess": World(guessing=1 / 6),
    "one label per item": World(policy=LabelsPerItem(most=1)),
    "three labels per item": World(policy=LabelsPerItem(least=3, most=3)),
}


class Items(NamedTuple):
    """Predictions [N]."""

    regions: Ints
    scores: Floats
    predicted: Ints
    truth: Ints

    @property
    def correct(self) -> Flags:
        """Whether each is the truth."""
        correct: Flags = self.predicted == self.truth
        return correct


def settings_of(world: World, **more: object) -> Settings:
    """The configuration of a world, with more keys of its model."""
    return Settings.model_validate(
        {
            "models": {
                "m": {
                    "classes": [str(number) for number in range(world.classes)],
                    "score_bins": BINS,
                    "groupings": {REGION: {"by": "attribute", "attribute": REGION}},
                    "assessments": {"ask": {"grouping": REGION, "budget": {"labels": 1}}},
                    "forgetting": {"after_change": False},
                    **more,
                }
            }
        }
    )


def predictions(world: World, rng: np.random.Generator) -> Items:
    """The traffic."""
    regions = rng.integers(0, world.regions, TRAFFIC)
    scores = np.clip(rng.beta(6, 1.2, TRAFFIC), 0.05, 0.995)
    logits = special.logit(scores) + 0.3 * rng.normal(size=world.regions)[regions]
    correct = rng.random(TRAFFIC) < special.expit(logits - np.where(regions == 0, world.worse, 0.0))
    predicted = rng.integers(0, world.classes, TRAFFIC)
    other = (predicted + rng.integers(1, world.classes, TRAFFIC)) % world.classes
    return Items(regions, scores, predicted, np.where(correct, predicted, other))


def traffic_of(items: Items, space: CellSpace, world: World) -> Traffic:
    """Counted in tables."""
    traffic = Traffic(tables(space))
    traffic.landmark = NOW
    traffic.tables[REGION].restore([str(n) for n in range(world.regions)], np.zeros(world.regions))
    bins = space.bins(items.scores)
    columns_of = {"class_bins": items.predicted * BINS + bins, "bins": bins, "classes": items.predicted}
    for attribute, table in traffic.tables.items():
        rows = items.regions if attribute else np.zeros(TRAFFIC, np.intp)
        for columns, block in table.blocks.items():
            place = (rows, columns_of[columns])
            for into, values in ((block.counts, 1), (block.weights, 1.0), (block.score_sums, items.scores)):
                if into.shape[1]:
                    np.add.at(into, place, values)
    return traffic


class People:
    """Who label."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._world, self._rng = world, rng
        self._abilities = world.ability + world.unlike * rng.normal(size=world.people)
        self._abilities[: round(world.guessing * world.people)] = 0.0

    def labels(self, predicted: int, truth: int) -> list[tuple[int, int]]:
        """Person and class of the labels that one item gets."""
        world, rng = self._world, self._rng
        ease = np.exp(-world.difficulty * rng.normal() - (0.0 if predicted == truth else world.harder))
        is_audited, given = rng.random() < world.policy.audit_share, list[tuple[int, int]]()
        for person in rng.permutation(world.people).tolist():
            knows = rng.random() < np.tanh(0.5 * self._abilities[person] * ease)
            given.append((person, truth if knows else int(rng.integers(world.classes))))
            labels = [label for _, label in given]
            if not world.policy.wants_another(labels, predicted, is_audited=is_audited):
                break
        return given


def outcomes(
    items: Items, chosen: Ints, people: People | None, space: CellSpace
) -> tuple[list[OutcomeEntry], float]:
    """Labels of some predictions by people, or their true classes; and the number of labels per item."""
    entries = list[OutcomeEntry]()
    for item in chosen.tolist():
        predicted, truth = int(items.predicted[item]), int(items.truth[item])
        region = str(items.regions[item])
        fact = Fact(
            *(f"r{item}", f"i{item}", REGION, region, space.classes[predicted], float(items.scores[item])),
            *({REGION: region}, NOW, NOW),
        )
        first = None
        for person, label in [(0, truth)] if people is None else people.labels(predicted, truth):
            place = (1, len(entries))
            given = LabelFact(space.classes[label], NOW, f"p{person}")
            entries.append(OutcomeEntry(place, place, "ask", fact, given, first))
            first = first or place
    return entries, len(entries) / len(chosen)


class Found(NamedTuple):
    """Of one run: labels per item; of the worst region, the others and all, ends of intervals, and truths."""

    labels: float
    first: Floats  # where first labels are taken for the truth: lower, upper [2, regions + 1]
    people: Floats  # where people may err
    clean: Floats  # of true classes
    truth: Floats  # [regions + 1], all traffic last


def run_once(world: World, seed: int, run: int) -> Found:
    """One run: a function of its arguments alone."""
    rng = np.random.default_rng([seed, run])
    model, space = (
        settings_of(world, labels_per_item={"most": 2}).models["m"],
        settings_of(world).cell_space("m"),
    )
    items = predictions(world, rng)
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(items.regions == r))[: world.labels] for r in range(world.regions)]
    )
    rng.shuffle(chosen)
    traffic = traffic_of(items, space, world)
    entries, count = outcomes(items, chosen, People(world, rng), space)
    clean, _ = outcomes(items, chosen, None, space)
    estimate = partial(estimates, model=model, space=space, traffic=traffic, world=world)
    truth = [items.correct[items.regions == r].mean() for r in range(world.regions)]
    return Found(
        count,
        estimate(entries, None),
        estimate(entries, rng),
        estimate(clean, None),
        np.array([*truth, items.correct.mean()]),
    )


def labelled(
    entries: list[OutcomeEntry], space: CellSpace, traffic: Traffic, *, may_err: bool = True
) -> tuple[OutcomeLedger, GroupIndex]:
    """The labels as the service holds them, and the groups."""
    ledger = OutcomeLedger(space, may_err=may_err)
    ledger.fold(entries)
    ledger.place()
    return ledger, GroupIndex(space, traffic, ledger.cells)


def learned(ledger: OutcomeLedger, index: GroupIndex, rng: np.random.Generator) -> LearnedTruth | None:
    """What the labels tell of people and items; None without a label."""
    items = ledger.labelled_items(at=NOW)
    if items is None or not len(items.rows):
        return None
    classes = len(index.space.classes)
    return learn_truth(items, ledger.people, index[REGION], groupings=[REGION], classes=classes, rng=rng)


def estimates(
    entries: list[OutcomeEntry],
    rng: np.random.Generator | None,
    *,
    model: ModelSettings,
    space: CellSpace,
    traffic: Traffic,
    world: World,
) -> Floats:
    """Ends of the intervals of all regions and of all traffic [2, regions + 1].

    With an `rng`, people may err.
    """
    ledger, index = labelled(entries, space, traffic)
    truth = None if rng is None else learned(ledger, index, rng)
    found = assess_groupings(
        settings=model, index=index, probability_sums={}, ledger=ledger, at=NOW, truth=truth
    )
    return ends_of(found, world)


def ends_of(found: Mapping[str, GroupingSnapshot], world: World) -> Floats:
    """Ends of the intervals of all regions and of all traffic [2, regions + 1]."""
    of_all, regions = found[ALL].accuracy, found[REGION]
    order = [regions.groups.index(str(number)) for number in range(world.regions)]
    ends: list[Any] = [
        np.append(ends[order], whole)
        for ends, whole in (
            (regions.accuracy.lower, of_all.lower),
            (regions.accuracy.upper, of_all.upper),
        )
    ]
    return np.array(ends)


WAYS: Final = ("first labels", "people err", "true classes")

COLUMNS: Final = (
    "labels per item",
    *(f"{which}: {what}, %" for which in ("worst region", "other regions", "all traffic") for what in WAYS),
    "width of a region, times that of true classes",
)


def cells_of(found: list[Found]) -> tuple[Cell, ...]:
    """Shares of intervals that hold, in percent."""
    truth = np.stack([each.truth for each in found])

    def held(ends: list[Floats], which: slice) -> float:
        lower, upper = np.stack(ends, axis=1)
        return float(100 * ((lower <= truth) & (truth <= upper))[:, which].mean())

    first, people, clean = ([getattr(each, name) for each in found] for name in ("first", "people", "clean"))
    widths = [np.mean([ends[1, :-1] - ends[0, :-1] for ends in each]) for each in (people, clean)]
    cells: list[Cell] = [float(np.mean([each.labels for each in found]))]
    for which in (slice(0, 1), slice(1, -1), slice(-1, None)):
        cells += [held(each, which) for each in (first, people, clean)]
    return (*cells, float(widths[0] / widths[1]))


def table(runs: int, jobs: int, worlds: Mapping[str, World]) -> Table:
    """Of all worlds."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    with workers(jobs) as crew:
        for name, world in worlds.items():
            given = [(world, 0, run) for run in range(runs)]
            rows.append((name, cells_of(crew.each(run_once, given, name))))
    return Table(f"95% intervals of accuracies that hold; {runs} runs", "world", COLUMNS, rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure intervals if people err.")
    parser.add_argument("--runs", type=int, default=100, help="of every world")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--world", choices=WORLDS, action="append", help="only this one; may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    worlds = {name: WORLDS[name] for name in options.world or WORLDS}
    print_tables(
        [table(options.runs, options.jobs, worlds)], as_json=options.json, as_markdown=options.markdown
    )


if __name__ == "__main__":
    main()
