"""How often healthy groups alarm when one looks after every label, and how soon failing ones do.

Tables: groups that are just as accurate as they must be, looked at after every label; discoveries among
many groups, where Thompson sampling chooses who is asked about; and labels until an alarm after a drop,
beside the least that any rule with so few false alarms needs on average, ln(1 / alpha) / KL (Wald). The
usual rule, by the posterior, stands beside evidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks.change_evidence import log_e_changed
from service.domain.arrays import Flags, Floats
from service.replay.tables import Table, print_tables
from service.statistics.e_processes import discoveries, log_e_below

Rule = Callable[[Floats, Floats, float], Flags]

ALPHA = 0.05
THRESHOLD = 0.92
DROPS = (0.05, 0.07, 0.1, 0.2)
LABELS = 1_000
HEALTHY_BEFORE = 500
BROKEN_OFF = 1_500
"""Labels after a drop of which a run of the evidence of a change consists."""
LONGEST = 3_000
OTHER_DROPS = (0.05, 0.1, 0.2)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Others, at which the e-process is to be as quick."""


class Rates(NamedTuple):
    """Shares of groups, or of discoveries, by how they came about."""

    by_evidence: float
    by_posterior: float


def evident(correct: Floats, wrong: Floats, threshold: float = THRESHOLD) -> Flags:
    """Whether there is evidence that groups are below a threshold."""
    return np.asarray(log_e_below(correct, wrong, np.array(threshold)) >= -np.log(ALPHA))


def suspected(correct: Floats, wrong: Floats, threshold: float = THRESHOLD) -> Flags:
    """The usual rule: whether P(accuracy < threshold) of a uniform prior is high."""
    return np.asarray(special.betainc(1 + correct, 1 + wrong, threshold) > 1 - ALPHA)


def ever_alarmed(accuracy: float, groups: int, rng: np.random.Generator) -> Rates:
    """Share of the groups that alarm after any of `LABELS` labels."""
    correct = (rng.random((groups, LABELS)) < accuracy).cumsum(axis=1).astype(np.float64)
    wrong = np.arange(1, LABELS + 1) - correct
    return Rates(*(float(rule(correct, wrong).any(axis=1).mean()) for rule in (evident, suspected)))


def _first(alarms: Flags) -> int:
    """Label of the first alarm, counted from 1; that of the last label if there is none."""
    return int(alarms.argmax()) + 1 if alarms.any() else len(alarms)


def false_discoveries(rng: np.random.Generator, *, groups: int = 100, failing: int = 10) -> Rates:
    """Highest share of false ones among the discoveries of any look, while Thompson sampling asks.

    The failing groups are 20 points below the threshold, all others at it.
    """
    accuracy = np.where(np.arange(groups) < failing, THRESHOLD - 0.2, THRESHOLD)
    correct, wrong = np.zeros(groups), np.zeros(groups)
    shares = []
    for label in range(15 * groups):
        asked = int(np.argmin(rng.beta(9 + correct, 1 + wrong)))
        answer = rng.random() < accuracy[asked]
        correct[asked] += answer
        wrong[asked] += not answer
        if label % 10 == 0:
            taken = discoveries(log_e_below(correct, wrong, np.array(THRESHOLD)), ALPHA)
            rules = taken, suspected(correct, wrong)
            shares.append([found[failing:].sum() / max(found.sum(), 1) for found in rules])
    worst = np.max(shares, axis=0)
    return Rates(float(worst[0]), float(worst[1]))


def least_labels(accuracy: float, error: float, threshold: float = THRESHOLD) -> float:
    """Labels that any rule needs on average to tell an accuracy from the threshold with such an error."""
    divergence = special.rel_entr(accuracy, threshold) + special.rel_entr(1 - accuracy, 1 - threshold)
    return float(-np.log(error) / divergence)


def labels_until_alarm(rule: Rule, accuracy: float, threshold: float = THRESHOLD) -> float:
    """Mean, of groups that dropped from the threshold and are looked at after every label from the drop on.

    No chance is in it: what the rule says of every number of wrong ones among so many labels is known, and
    so is how likely a group comes to each without an alarm before. Those that come through `LONGEST` labels,
    fewer than one in ten thousand, count with these.
    """
    return _mean_first(alarms_by_counts(rule, threshold), accuracy)


@cache
def alarms_by_counts(rule: Rule, threshold: float) -> Flags:
    """What a rule says after so many labels with so many wrong ones [labels, wrong ones]."""
    # Among so many labels, with more wrong ones any rule has alarmed before.
    most = int((1 - threshold) * LONGEST + 6 * np.sqrt(threshold * (1 - threshold) * LONGEST)) + 100
    labels, wrong = np.ogrid[: LONGEST + 1, : most + 1]
    correct = np.maximum(labels - wrong, 0).astype(np.float64)
    return rule(correct, np.minimum(wrong, labels).astype(np.float64), threshold)


def _mean_first(alarms: Flags, accuracy: float) -> float:
    """Mean of labels until an alarm, by what a rule says [labels, wrong ones]."""
    silent = np.zeros(alarms.shape[1])
    silent[0] = 1.0
    mean = 0.0
    for alarmed in alarms[1:]:
        mean += float(silent.sum())
        wrong = np.concatenate(([0.0], silent[:-1]))
        silent = np.where(alarmed, 0.0, accuracy * silent + (1 - accuracy) * wrong)
    return mean


def labels_until_change(accuracy: float, runs: int, rng: np.random.Generator) -> float:
    """Mean of labels from a drop until a change is found, in runs without one found before the drop."""
    delays = []
    for _ in range(runs):
        expected = np.repeat([THRESHOLD, accuracy], [HEALTHY_BEFORE, BROKEN_OFF])
        evidence = log_e_changed(rng.random(len(expected)) < expected, THRESHOLD)
        delays.append(_first(evidence >= -np.log(ALPHA)) - HEALTHY_BEFORE)
    return float(np.mean([delay for delay in delays if delay > 0]))


def of_healthy_groups(groups: int) -> Table:
    """Groups at the threshold, and better ones."""
    rng = np.random.default_rng(0)
    rows = [
        (f"{accuracy:.2f}", tuple(100 * rate for rate in ever_alarmed(accuracy, groups, rng)))
        for accuracy in (THRESHOLD, THRESHOLD + 0.02, THRESHOLD + 0.05)
    ]
    title = (
        f"healthy groups that ever alarm in {LABELS:,} labels, looked at after each; "
        f"threshold {THRESHOLD}, alpha {ALPHA}"
    )
    return Table(title, "accuracy", ("by evidence, %", "by posterior, %"), list(rows))


def of_discoveries(runs: int) -> Table:
    """A hundred groups, ten of which fail."""
    rates = [false_discoveries(np.random.default_rng(seed)) for seed in range(runs)]
    means = tuple(100 * float(each) for each in np.mean(rates, axis=0))
    title = f"false ones among discoveries, of the worst look: mean of {runs} runs, alpha {ALPHA}"
    return Table(title, "groups", ("by e-BH, %", "by posteriors, %"), [("100, 10 fail", means)])


def of_drops(runs: int) -> Table:
    """Labels until an alarm, by size of the drop."""
    rng = np.random.default_rng(2)
    rows = []
    for drop in DROPS:
        accuracy = THRESHOLD - drop
        usual, found = (labels_until_alarm(rule, accuracy) for rule in (suspected, evident))
        least = least_labels(accuracy, ALPHA)
        figures = (usual, found, least, found / least, labels_until_change(accuracy, runs, rng))
        rows.append((f"{THRESHOLD} to {accuracy:.2f}", figures))
    title = f"labels until an alarm after a drop: means, of changes those of {runs} runs"
    columns = (
        "posterior",
        "e-process",
        "least",
        "e-process / least",
        "changed",
    )
    return Table(title, "accuracy", columns, list(rows))


def of_other_thresholds() -> Table:
    """Labels of the e-process until an alarm, in terms of the least."""
    rows = []
    for threshold in THRESHOLDS:
        ends = [threshold - drop for drop in OTHER_DROPS]
        ratios = [
            labels_until_alarm(evident, end, threshold) / least_labels(end, ALPHA, threshold) for end in ends
        ]
        rows.append((f"{threshold:g}", tuple(ratios)))
    title = "other thresholds: labels of the e-process until an alarm after a drop, over the least"
    columns = tuple(f"{100 * drop:g} points" for drop in OTHER_DROPS)
    return Table(title, "threshold", columns, list(rows))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure false alarms, and labels until true ones.")
    parser.add_argument("--runs", type=int, default=400, help="of every figure")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args()
    tables = [
        of_healthy_groups(max(1_000, options.runs)),
        of_discoveries(options.runs // 10),
        of_drops(options.runs),
        of_other_thresholds(),
    ]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
