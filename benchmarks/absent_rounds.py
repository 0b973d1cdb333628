"""How long a round waits if thousands of requests say what items without a self-selected label are like.

CPU time of the round's thread, for weights and imputations alone. docs/unrequested-labels.md has the figures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from benchmarks.several_labels import NOW, World, predictions, settings_of, traffic_of
from benchmarks.unrequested_labels import outcome_entries
from service.monitoring.absent_learning import learn_accuracies
from service.monitoring.absent_watch import AbsentWatch
from service.monitoring.group_index import GroupIndex
from service.monitoring.outcome_table import OutcomeLedger
from service.monitoring.weighted_labels import model_requested_items, weigh_model_labels
from service.replay.tables import Cell, Table, print_tables

WORLD: Final = World(regions=1_000)
REQUESTS: Final = 10  # per region
REST: Final = 30.0
WAITING: Final = {"all requested items waited for a label": 1.0, "a third of them did": 0.3}
COLUMNS: Final = ("learning within the round", "first round", "round that starts learning", "next one")


def costs(waiting: float) -> tuple[float, ...]:
    """CPU seconds of the round's thread, by `COLUMNS`."""
    rng = np.random.default_rng(0)
    settings = settings_of(WORLD, unrequested_labels={"items": "unknown"})
    space, model = settings.cell_space("m"), settings.models["m"]
    items = predictions(WORLD, rng)
    regions = (np.flatnonzero(items.regions == r)[:REQUESTS] for r in range(WORLD.regions))
    entries = outcome_entries(items, rng.permutation(np.concatenate([*regions])), space, begin=0)
    waited, absent = (rng.random(len(items.regions)) < share for share in (waiting, 0.5))
    entries += outcome_entries(
        items, np.flatnonzero(waited), space, begin=len(entries), absent=absent, requested=False
    )
    ledger = OutcomeLedger(space, unrequested="unknown")
    ledger.fold(entries)
    ledger.place()
    index = GroupIndex(space, traffic_of(items, space, WORLD), ledger.cells)

    def at_once() -> None:
        found = model_requested_items(model, index, ledger, now=NOW)
        learned = None if found is None else learn_accuracies(found)
        weigh_model_labels(model, index, ledger, now=NOW, absent=learned)

    with ThreadPoolExecutor(1) as executor:
        watch = AbsentWatch("m", model, executor, rest_seconds=REST)

        def round_after(seconds: float) -> Callable[[], None]:
            def go() -> None:
                watch.refresh(index, ledger, (1, 0), now=NOW + seconds)
                weigh_model_labels(model, index, ledger, now=NOW, absent=watch.learned)

            return go

        rounds = [_measured(round_after(seconds)) for seconds in (0.0, 5.0)]
        executor.submit(int).result()  # the learning before it has ended
        return (_measured(at_once), *rounds, _measured(round_after(10.0)))


def _measured(go: Callable[[], None]) -> float:
    began = time.thread_time()
    go()
    return time.thread_time() - began


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure what learning of items without a label costs.")
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--markdown", action="store_true", help="for a page")
    given = parser.parse_args()
    rows: list[tuple[str, tuple[Cell, ...]]] = [(way, costs(share)) for way, share in WAITING.items()]
    title = f"CPU seconds of the round's thread; {WORLD.regions:,} regions, {REQUESTS} requests of each"
    tables = [Table(title, "10,000 answered requests", COLUMNS, rows)]
    print_tables(tables, as_json=given.json, as_markdown=given.markdown)


if __name__ == "__main__":
    main()
