"""Labels until a certificate, beside the least that any rule needs, and how often one is false.

python -m benchmarks.certificates

The policy `certify` requests the labels, one at a time, and the certificate is looked at after every label.
"Least" is the sum over the groups of ln(1 / alpha) / KL(accuracy || threshold), the average number of labels
that any rule with so few false certificates needs (Wald). Of groups that miss the threshold, labels until
this is shown are counted under `certify` and under random sampling.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from service.domain.arrays import Floats
from service.replay.tables import Cell, Table, print_tables
from service.statistics.certificates import RunningCertificates
from service.statistics.policies import POLICIES, Situation

ALPHA = 0.05
THRESHOLD = 0.9
GROUPS = 20
AT_ONCE = 100
"""Runs that advance together."""
ABOUT = f"{GROUPS} groups, threshold {THRESHOLD}, alpha {ALPHA}"
MEETING = {
    "all 0.93": np.full(GROUPS, 0.93),
    "all 0.95": np.full(GROUPS, 0.95),
    "0.92 to 0.98": np.linspace(0.92, 0.98, GROUPS),
    "one 0.92, others 0.97": np.r_[0.92, np.full(GROUPS - 1, 0.97)],
}
MISSING = {
    "one 0.895, one 0.90, others 0.93": np.r_[0.895, 0.9, np.full(GROUPS - 2, 0.93)],
    "one 0.895, others 0.97": np.r_[0.895, np.full(GROUPS - 1, 0.97)],
    "one 0.90, others 0.97": np.r_[0.9, np.full(GROUPS - 1, 0.97)],
    "all 0.90": np.full(GROUPS, 0.9),
}
FAILING = {f"one {low}, others 0.95": np.r_[low, np.full(GROUPS - 1, 0.95)] for low in (0.85, 0.8, 0.7)}


class Ends(NamedTuple):
    """After how many labels each run had its certificate, or showed a miss; infinite if never [R]."""

    certified: Floats
    missed: Floats


def least_labels(accuracy: Floats, threshold: float = THRESHOLD, alpha: float = ALPHA) -> float:
    """Labels that a certificate takes on average, at the least."""
    divergence = special.rel_entr(accuracy, threshold) + special.rel_entr(1 - accuracy, 1 - threshold)
    return float((-np.log(alpha) / divergence).sum())


def watch(
    accuracy: Floats,
    *,
    runs: int,
    most: int,
    rng: np.random.Generator,
    policy: str = "certify",
    threshold: float = THRESHOLD,
    until_missed: bool = False,
) -> Ends:
    """Label until the certificate, or until a miss is shown; at most `most` labels in a run."""
    groups = len(accuracy)
    running = RunningCertificates(runs, groups, target=threshold, alpha=ALPHA)
    chooser, going = POLICIES[policy](), np.arange(runs)
    ends = Ends(np.full(runs, np.inf), np.full(runs, np.inf))
    task: Any = None  # neither policy looks at it
    for label in range(1, most + 1):
        weights = np.ones((len(going), groups))
        situation = Situation(None, weights, weights > 0, running.labels_left())
        named = chooser.choose(task, situation, rng)[:, 0]
        running.observe(np.arange(len(going)), named, rng.random(len(going)) < accuracy[named])
        done = running.is_given
        ends.certified[going[done]] = label
        if until_missed:
            missed = running.is_missed
            ends.missed[going[missed]] = label
            done[missed] = True
        if done.any():
            going = going[~done]
            running.collected = running.collected.part(np.flatnonzero(~done))
        if not len(going):
            break
    return ends


def batched(accuracy: Floats, *, runs: int, seed: int = 0, **options: Any) -> Ends:
    """`watch` in batches of runs."""
    parts = [
        watch(accuracy, runs=min(AT_ONCE, runs - first), rng=np.random.default_rng((seed, first)), **options)
        for first in range(0, runs, AT_ONCE)
    ]
    return Ends(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def of_meeting(runs: int, seed: int) -> Table:
    """Labels until a certificate."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, accuracy in MEETING.items():
        taken, least = (
            batched(accuracy, runs=runs, seed=seed, most=1_000_000).certified,
            least_labels(accuracy),
        )
        high = float(np.quantile(taken, 0.9))
        rows.append((name, (float(taken.mean()), least, float(taken.mean()) / least, high / least)))
    columns = ("labels", "least", "labels / least", "90% quantile / least")
    return Table(f"labels until a certificate: {ABOUT}, mean of {runs} runs", "accuracy", columns, rows)


def of_missing(runs: int, most: int, seed: int) -> Table:
    """False certificates."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, accuracy in MISSING.items():
        false = np.isfinite(batched(accuracy, runs=runs, seed=seed, most=most).certified)
        rows.append((name, (float(false.sum()), 100 * float(false.mean()))))
    title = f"runs with a false certificate within {most:,} labels: {ABOUT}, {runs} runs"
    return Table(title, "accuracy", ("runs", "%"), rows)


def of_failing(runs: int, most: int, seed: int) -> Table:
    """Labels until a miss is shown."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, accuracy in FAILING.items():
        options = {"runs": runs, "seed": seed, "most": most, "until_missed": True}
        ends = (batched(accuracy, policy=each, **options).missed for each in ("certify", "random"))
        rows.append((name, tuple(float(np.median(each)) for each in ends)))
    title = f"labels until a miss is shown: {ABOUT}, median of {runs} runs"
    return Table(title, "accuracy", ("certify", "random"), rows)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description="Measure labels until a certificate, and false certificates."
    )
    parser.add_argument("--runs", type=int, default=100, help="of figures of labels")
    parser.add_argument("--false-runs", type=int, default=1_000, help="of false certificates")
    parser.add_argument("--most", type=int, default=15_000, help="labels of a run without a certificate")
    parser.add_argument("--seed", type=int, default=0)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [
        of_meeting(options.runs, options.seed),
        of_missing(options.false_runs, options.most, options.seed),
        of_failing(options.runs, options.most, options.seed),
    ]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
