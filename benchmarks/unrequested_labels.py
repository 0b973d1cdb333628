"""Do intervals of groups hold with labels that nobody requested, and how many requests do these save?

Through the service's own path from outcomes to estimates. One region is worse than the others.
docs/unrequested-labels.md explains the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.missing_answers import WORLD, predictions
from benchmarks.several_labels import NOW, REGION, Items, ends_of, settings_of, traffic_of
from service.config.unrequested import ChosenBy
from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import CellSpace
from service.domain.groupings import ALL
from service.domain.traffic import Traffic
from service.monitoring.absent_learning import learn_accuracies
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.posteriors import assess_groupings
from service.monitoring.weighted_labels import model_requested_items, weigh_model_labels
from service.replay.tables import Cell, Table, print_tables
from service.replay.workers import workers
from service.store.outcome_entries import OutcomeEntry
from service.store.records import ABSENT, Fact, LabelFact

REQUESTS: Final = 60  # per region


@dataclass(frozen=True)
class Arrival:
    """How labels come that nobody requested; what is not said is usual."""

    items: ChosenBy
    waiting: float = 1.0  # share of the traffic that waits for labels
    absent: float = 0.0  # share of it that gets none
    at_random: bool = False  # whether it is as good as random which; else the hardest ones, mostly
    adversarial: bool = False  # whether all of it is what the model gets wrong
    requests: int = REQUESTS  # per region
    only_absent: bool = False  # whether only items without a label are requested

    def without_label(self, items: Items, hardness: Floats, rng: np.random.Generator) -> Flags:
        """Which predictions get no label [N]."""
        count = round(self.absent * len(hardness))
        order = hardness + 0.5 * rng.random(len(hardness))
        if self.at_random:
            order = rng.random(len(hardness))
        if self.adversarial:
            order = ~items.correct + rng.random(len(hardness))
        found = np.zeros(len(hardness), np.bool_)
        found[np.argsort(-order)[:count]] = True
        return found


WAYS: Final[Mapping[str, Arrival]] = {
    "census: 2,000 items, all with a label": Arrival("census", waiting=0.1, requests=0),
    "census: 1% absent, all of them incorrect": Arrival("census", absent=0.01, adversarial=True, requests=0),
    "census: 1% absent at random": Arrival("census", absent=0.01, at_random=True, requests=0),
    "sampled: 5% of the items": Arrival("sampled", waiting=0.05),
    "unknown: half absent at random": Arrival("unknown", absent=0.5, at_random=True),
    "unknown: half absent, harder ones": Arrival("unknown", absent=0.5),
    "unknown: half absent, harder ones, which alone are requested": Arrival(
        "unknown", absent=0.5, only_absent=True
    ),
    "unknown: 90% absent, harder ones": Arrival("unknown", absent=0.9),
    "unknown: 10% absent, harder ones": Arrival("unknown", absent=0.1),
    "unknown: half absent, 20% of items wait": Arrival("unknown", absent=0.5, waiting=0.2),
    "unknown: half absent, 1% of items wait": Arrival("unknown", absent=0.5, waiting=0.01),
    "unknown: half absent, 10 requests per region": Arrival("unknown", absent=0.5, requests=10),
    "unknown: half absent, no requests": Arrival("unknown", absent=0.5, requests=0),
}


class Found(NamedTuple):
    """Of one run, ends of intervals [2, regions + 1], all traffic last, and truths [regions + 1]."""

    naive: Floats  # as if items with a label were a random sample
    alone: Floats  # from requests alone
    found: Floats
    truth: Floats
    bias: Floats  # of the labels: 2.5, 50 and 97.5% quantiles, and the truth [4]


def run_once(way: str, seed: int, run: int) -> Found:
    """One run: a function of its arguments alone."""
    rng = np.random.default_rng([seed, run])
    space = settings_of(WORLD).cell_space("m")
    arrival = WAYS[way]
    items, hardness = predictions(rng)
    absent = arrival.without_label(items, hardness, rng)
    pool = absent if arrival.only_absent else np.ones(len(absent), np.bool_)
    chosen = np.concatenate(
        [
            rng.permutation(np.flatnonzero((items.regions == r) & pool))[: arrival.requests]
            for r in range(WORLD.regions)
        ]
    )
    rng.shuffle(chosen)
    waiting = np.flatnonzero(rng.random(len(absent)) < arrival.waiting)
    traffic = traffic_of(items, space, WORLD)
    requested = outcome_entries(items, chosen, space, begin=0)
    others = outcome_entries(items, waiting, space, begin=len(requested), absent=absent, requested=False)
    given = [entry for entry in others if entry.label.true_class]
    entries = requested + (given if arrival.items == "sampled" else others)
    truth = [items.correct[items.regions == r].mean() for r in range(WORLD.regions)]
    whole = items.correct.mean()
    found, bias = estimates(entries, arrival.items, space, traffic)
    return Found(
        estimates(requested + given, "sampled", space, traffic)[0],
        estimates(requested, None, space, traffic)[0],
        found,
        np.array([*truth, whole]),
        np.append(bias, items.correct[~absent].mean() - whole),
    )


def outcome_entries(
    items: Items,
    chosen: Ints,
    space: CellSpace,
    *,
    begin: int,
    absent: Flags | None = None,
    requested: bool = True,
) -> list[OutcomeEntry]:
    """Entries of the outcome stream about some predictions, of which some have no label."""
    entries = []
    for number, item in enumerate(chosen.tolist(), begin):
        region, position = str(items.regions[item]), (1 + number // 1_000, number % 1_000)
        drawn = (f"r{item}", f"i{item}", REGION, region) if requested else ("", f"i{item}", ALL, ALL)
        predicted, score = space.classes[items.predicted[item]], float(items.scores[item])
        fact = Fact(*drawn, predicted, score, {REGION: region}, NOW + item * 1e-3 - 100, NOW)
        label = LabelFact(space.classes[items.truth[item]], NOW, "")
        if absent is not None and absent[item]:
            label = LabelFact("", NOW, "", unanswered=ABSENT)
        entries.append(OutcomeEntry(position, position, "ask" if requested else "", fact, label))
    return entries


def estimates(
    entries: list[OutcomeEntry], chosen_by: ChosenBy | None, space: CellSpace, traffic: Traffic
) -> tuple[Floats, Floats]:
    """Ends of the intervals of all regions and of all traffic, and quantiles of the labels' bias [3]."""
    more: dict[str, Any] = {}
    if chosen_by is not None:
        more["unrequested_labels"] = {"items": chosen_by}
        if chosen_by == "sampled":
            more["unrequested_labels"]["sampling_rate"] = 0.05
    model = settings_of(WORLD, **more).models["m"]
    ledger = OutcomeLedger(space, unrequested=chosen_by)
    ledger.fold(entries)
    ledger.place()
    index = GroupIndex(space, traffic, ledger.cells)
    requested = model_requested_items(model, index, ledger, now=NOW) if chosen_by == "unknown" else None
    absent = None if requested is None else learn_accuracies(requested)
    weighted = weigh_model_labels(model, index, ledger, now=NOW, absent=absent)
    found = assess_groupings(
        settings=model, index=index, probability_sums={}, ledger=ledger, at=NOW, weighted=weighted
    )
    bias = weighted.selection_bias
    quantiles = np.full(3, np.nan) if bias is None else np.quantile(bias, (0.025, 0.5, 0.975))
    return ends_of(found, WORLD), quantiles


COLUMNS: Final = (
    *(f"regions: {which}, %" for which in ("naive", "requests alone", "both")),
    *(f"all traffic: {which}, %" for which in ("naive", "requests alone", "both")),
    *(
        f"width of {what}: {which}, points"
        for what in ("a region", "all traffic")
        for which in ("alone", "both")
    ),
)


def cells_of(found: list[Found]) -> tuple[Cell, ...]:
    """Shares of intervals that hold, in percent, and their widths."""
    truth = np.stack([each.truth for each in found])
    ends = [np.stack([getattr(each, way) for each in found], axis=1) for way in ("naive", "alone", "found")]
    cells: list[Cell] = []
    for which in (slice(0, -1), slice(-1, None)):
        cells += [
            100 * float(((lower <= truth) & (truth <= upper))[:, which].mean()) for lower, upper in ends
        ]
    for which in (slice(0, -1), slice(-1, None)):
        cells += [100 * float((upper - lower)[:, which].mean()) for lower, upper in ends[1:]]
    return tuple(cells)


def bias_cells(found: list[Found]) -> tuple[Cell, ...]:
    """Of the bias of unrequested labels: share of intervals that hold, means and widths, in percent."""
    lower, middle, upper, truth = np.stack([each.bias for each in found]).T
    held = (lower <= truth) & (truth <= upper)
    return tuple(100 * float(each.mean()) for each in (held, truth, middle, upper - lower))


def tables(runs: int, jobs: int, ways: Mapping[str, Arrival]) -> list[Table]:
    """Intervals of accuracies, and of the bias of labels."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    biases: list[tuple[str, tuple[Cell, ...]]] = []
    with workers(jobs) as crew:
        for way, arrival in ways.items():
            found = crew.each(run_once, [(way, 0, run) for run in range(runs)], way)
            cells = cells_of(found)
            if not arrival.requests:  # there is nothing to compare with
                cells = tuple(None if place in (1, 4, 6, 8) else cell for place, cell in enumerate(cells))
            rows.append((way, cells))
            if arrival.items == "unknown":
                biases.append((way, bias_cells(found)))
    title = f"95% intervals of accuracies that hold; {REQUESTS} requests per region, {runs} runs"
    columns = ("95% intervals that hold, %", "truth, points", "estimate, points", "width, points")
    bias = Table(f"Bias of the labels; {runs} runs", "labels", columns, biases)
    return [Table(title, "labels", COLUMNS, rows), *([bias] if biases else [])]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure intervals with labels that nobody requested.")
    parser.add_argument("--runs", type=int, default=100, help="of every way")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--way", choices=WAYS, action="append", help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--markdown", action="store_true", help="for a page")
    given = parser.parse_args()
    ways = {way: WAYS[way] for way in given.way or WAYS}
    found = tables(given.runs, given.jobs, ways)
    print_tables(found, as_json=given.json, as_markdown=given.markdown)


if __name__ == "__main__":
    main()
