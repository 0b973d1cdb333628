"""How much faster many replays at once are than the plain loop, side by side in one process.

The plain loops, of `plain_loops.py`, replay one run at a time; the rows named `formula` are the same loops
without scipy.stats. Both sides label the same pools by the same method, Thompson sampling with the informed
prior, and neither measures anything on the way. They take turns, and the fastest turn of each counts, since
other work on the machine only ever slows one down. The comparison differs in one more way: the plain loop
draws 10,000 times for every probability, as the paper does, where the replay integrates.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import plain_loops
from service.replay import engine
from service.replay.digits import digits_recordings
from service.replay.grouping import Grouper
from service.replay.recording import Recording, load_recording
from service.replay.study import beliefs_before
from service.statistics.questions import Question
from service.statistics.tasks import TASKS


@dataclass(frozen=True)
class Job:
    """What is replayed.

    Attributes:
        task: of the replay.
        metric: of the replay.
        policy: of the replay.
        top_m: groups asked at a step.
        loops: plain loops that do the same.
    """

    task: str
    metric: str
    policy: str
    top_m: int
    loops: tuple[str, ...]


JOBS = (
    Job("estimation", "accuracy", "thompson", 1, ("estimate_accuracy", "estimate_accuracy, formula")),
    Job("identification", "accuracy", "thompson", 1, ("least_accurate",)),
    Job("identification", "accuracy", "multiple_play", 3, ("least_accurate, top 3",)),
    Job("estimation", "confusion", "thompson", 1, ("estimate_confusion", "estimate_confusion, formula")),
    Job("comparison", "accuracy", "thompson", 1, ("compare_accuracy",)),
)


@dataclass(frozen=True)
class Row:
    """One plain loop, and the replay of the same.

    Attributes:
        recording: its name.
        loop: the plain loop's name.
        plain: labels per second of the plain loop.
        replay: labels per second of the replay.
        learned: labels per second of the replay with the learned prior.
    """

    recording: str
    loop: str
    plain: float
    replay: float
    learned: float

    @property
    def ratio(self) -> float:
        """How much faster the replay is."""
        return self.replay / self.plain


def replayed(recording: Recording, job: Job, prior: str, *, runs: int, budget: int) -> float:
    """Labels per second of one batch of runs, the making of the pool and the beliefs included."""
    pool = Grouper(10, "equal_size").by_predicted_class(recording)
    task = TASKS[job.task, job.metric](Question(pool.cells, top_m=job.top_m))
    rng = np.random.Generator(np.random.SFC64(0))
    start = time.perf_counter()
    beliefs = beliefs_before(prior, task.kind, pool, runs)
    engine.run(pool, task, beliefs, job.policy, runs=runs, budget=budget, measures=[], rng=rng)
    return runs * budget / (time.perf_counter() - start)


def compare(recording: Recording, job: Job, *, runs: int, budget: int, turns: int) -> list[Row]:
    """The plain loops of a job, and its replay, in turns."""
    plain = dict.fromkeys(job.loops, 0.0)
    fast, learned = 0.0, 0.0
    for _ in range(turns):
        for loop in job.loops:
            measured = plain_loops.measure(recording, loop, budget=budget, seconds=0.5)
            plain[loop] = max(plain[loop], measured.fastest)
        fast = max(fast, replayed(recording, job, "informed", runs=runs, budget=budget))
        learned = max(learned, replayed(recording, job, "learned", runs=min(runs, 100), budget=budget))
    return [Row(recording.name, loop, plain[loop], fast, learned) for loop in job.loops]


def _table(rows: Sequence[Row]) -> str:
    figures = f"{'labels/s':>9} {'replay':>10} {'ratio':>7} {'learned':>9} {'ratio':>7}"
    lines = [f"{'recording':<20} {'plain loop':<28} {figures}"]
    lines += [
        f"{row.recording:<20} {row.loop:<28} {row.plain:>9,.0f} {row.replay:>10,.0f} {row.ratio:>7,.1f}"
        f" {row.learned:>9,.0f} {row.learned / row.plain:>7,.1f}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure many replays at once against plain loops.")
    parser.add_argument("files", nargs="*", type=Path, help="recordings (default: those of digits)")
    parser.add_argument("--runs", type=int, default=500, help="runs at once")
    parser.add_argument("--budget", type=int, default=200, help="labels of a run")
    parser.add_argument("--turns", type=int, default=3, help="turns of both sides")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    options = parser.parse_args()
    recordings = [load_recording(path) for path in options.files] or digits_recordings()
    rows = [
        row
        for recording in recordings
        for job in JOBS
        for row in compare(recording, job, runs=options.runs, budget=options.budget, turns=options.turns)
    ]
    print(
        json.dumps([asdict(row) | {"ratio": row.ratio} for row in rows], indent=2)
        if options.json
        else _table(rows)
    )


if __name__ == "__main__":
    main()
