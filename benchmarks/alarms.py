"""How often healthy groups alarm when one looks after every label, and how soon failing ones do.

Tables: groups that are just as accurate as they must be, looked at after every label; the e-detector's run
lengths on such groups; discoveries among many groups, where Thompson sampling chooses who is asked about; and
labels until an alarm after a drop, beside the least that any rule with so few false alarms needs on average,
ln(1 / alpha) / KL (Wald). The usual rule, by the posterior, stands beside evidence.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from service.assessment.change import log_e_detector
from service.assessment.sequential import discoveries, log_e_below
from service.replay.tables import Table, print_tables

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ALPHA = 0.05
THRESHOLD = 0.92
DROPS = (0.05, 0.07, 0.1, 0.2)
RUN_LENGTHS = (1_000, 10_000)
LABELS = 1_000
HEALTHY_BEFORE = 500
LONGEST = 1_500


class Rates(NamedTuple):
    """Shares of groups, or of discoveries, by how they came about."""

    by_evidence: float
    by_posterior: float


def believed_below(correct: Floats, wrong: Floats) -> Floats:
    """P(accuracy < threshold) of a uniform prior."""
    return np.asarray(special.betainc(1 + correct, 1 + wrong, THRESHOLD))


def ever_alarmed(accuracy: float, groups: int, rng: np.random.Generator) -> Rates:
    """Share of the groups that alarm after any of `LABELS` labels."""
    correct = (rng.random((groups, LABELS)) < accuracy).cumsum(axis=1).astype(np.float64)
    wrong = np.arange(1, LABELS + 1) - correct
    evidence = log_e_below(correct, wrong, np.array(THRESHOLD)) >= -np.log(ALPHA)
    suspected = believed_below(correct, wrong) > 1 - ALPHA
    return Rates(float(evidence.any(axis=1).mean()), float(suspected.any(axis=1).mean()))


def run_length(limit: int, runs: int, rng: np.random.Generator) -> float:
    """Labels until a group that is just as accurate as it must be alarms by the e-detector: their mean.

    A run is broken off after ten times the limit, so the mean is told too low.
    """
    detectors = [log_e_detector(rng.random(10 * limit) < THRESHOLD, THRESHOLD) for _ in range(runs)]
    return float(np.mean([_first(detector >= np.log(limit)) for detector in detectors]))


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
            evident = discoveries(log_e_below(correct, wrong, np.array(THRESHOLD)), ALPHA)
            suspected = believed_below(correct, wrong) > 1 - ALPHA
            shares.append([found[failing:].sum() / max(found.sum(), 1) for found in (evident, suspected)])
    worst = np.max(shares, axis=0)
    return Rates(float(worst[0]), float(worst[1]))


def least_labels(accuracy: float, error: float) -> float:
    """Labels that any rule needs on average to tell an accuracy from the threshold with such an error."""
    divergence = special.rel_entr(accuracy, THRESHOLD) + special.rel_entr(1 - accuracy, 1 - THRESHOLD)
    return float(-np.log(error) / divergence)


class Labels(NamedTuple):
    """Labels until an alarm, by rule; means."""

    by_evidence: float
    by_posterior: float


def labels_until_alarm(accuracy: float, runs: int, rng: np.random.Generator) -> Labels:
    """Of groups that dropped from the threshold and are looked at after every label from the drop on."""
    correct = (rng.random((runs, LONGEST)) < accuracy).cumsum(axis=1).astype(np.float64)
    wrong = np.arange(1, LONGEST + 1) - correct
    evident = log_e_below(correct, wrong, np.array(THRESHOLD)) >= -np.log(ALPHA)
    suspected = believed_below(correct, wrong) > 1 - ALPHA
    return Labels(*(float(np.mean([_first(run) for run in rule])) for rule in (evident, suspected)))


def labels_until_detected(accuracy: float, limit: int, runs: int, rng: np.random.Generator) -> float:
    """Mean of labels from a drop until the e-detector's alarm, in runs without one before the drop."""
    delays = []
    for _ in range(runs):
        expected = np.repeat([THRESHOLD, accuracy], [HEALTHY_BEFORE, LONGEST])
        detector = log_e_detector(rng.random(len(expected)) < expected, THRESHOLD)
        delays.append(_first(detector >= np.log(limit)) - HEALTHY_BEFORE)
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


def of_run_lengths(runs: int) -> Table:
    """The e-detector on groups at the threshold."""
    rng = np.random.default_rng(1)
    rows = [(f"{limit:,}", (run_length(limit, runs, rng),)) for limit in RUN_LENGTHS]
    title = f"e-detector: labels until the alarm of a healthy group, mean of {runs} (broken off at ten times)"
    return Table(title, "configured", ("labels",), list(rows))


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
        found, least = labels_until_alarm(accuracy, runs, rng), least_labels(accuracy, ALPHA)
        detected = [labels_until_detected(accuracy, limit, runs, rng) for limit in RUN_LENGTHS]
        figures = (found.by_posterior, found.by_evidence, least, found.by_evidence / least, *detected)
        rows.append((f"{THRESHOLD} to {accuracy:.2f}", figures))
    title = f"labels until an alarm after a drop, mean of {runs}"
    columns = (
        "posterior",
        "e-process",
        "least",
        "e-process / least",
        *(f"e-detector {n:,}" for n in RUN_LENGTHS),
    )
    return Table(title, "accuracy", columns, list(rows))


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
        of_run_lengths(options.runs // 4),
        of_discoveries(options.runs // 10),
        of_drops(options.runs),
    ]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
