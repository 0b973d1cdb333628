"""`credence replay --fault`: days until a fault of one group is found, and a configuration that finds it."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import yaml

from service.domain.arrays import Floats
from service.domain.cells import POSITIVE_SCORE, SCORE_BIN
from service.domain.errors import RecordingError
from service.domain.groupings import ALL
from service.replay.fault_replay import FaultyItems, Found, look_times, run_faults
from service.replay.grouping import Grouper
from service.replay.pool import Pool
from service.replay.recording import Recording
from service.replay.tables import Cell, Report, Table
from service.replay.workers import Workers, batches
from service.statistics.detection_time import (
    Delay,
    Detection,
    Fault,
    Labelling,
    PolicyFamily,
    Rules,
    days_to_detection,
)

PREDICTED_CLASS: Final = "predicted_class"
"""Stands for the class where an attribute would be named."""

_FAMILIES: Final[dict[str, PolicyFamily]] = {"thompson": "adaptive", "random": "traffic"}
_RUNS_AT_ONCE: Final = 10
_ADVICE: Final = (
    "Request more labels a day, use fewer groups or a longer half-life, or accept a higher threshold."
)
_MOST_LABELS: Final = 100_000  # of a run before the fault
_LEAST_CONFIDENCE: Final = 0.5
_LONGEST_NAME: Final = 100  # in a configuration they have 128 characters at most
_EXACT_DAYS: Final = 10  # fewer have a decimal


def fault_group(options: argparse.Namespace) -> tuple[str, str]:
    """Name of the attribute and its value, from the option `--fault`.

    Raises:
        RecordingError: it is not written as NAME=VALUE, or groups are to be by another attribute.
    """
    name, equals, value = (options.fault or "").partition("=")
    if not (name and equals and value):
        raise RecordingError("--fault", "write NAME=VALUE, such as region=r3 or predicted_class=3")
    if options.group_by not in {None, name}:
        raise RecordingError("--group-by", f"the fault is in a group by {name}; leave it out")
    return name, value


@dataclass(frozen=True)
class _Way:
    """What a policy finds, announced and simulated."""

    policy: str
    announced: Detection
    simulated: Detection


def fault_report(recording: Recording, options: argparse.Namespace, crew: Workers) -> Report:
    """Plant the fault in a recording, and tell how soon it is found.

    Raises:
        RecordingError: an option or the recording cannot be used for this.
    """
    name, value = fault_group(options)
    if options.labels_per_day * options.days_before > _MOST_LABELS:
        raise RecordingError(
            "--days-before",
            f"{options.days_before} days of {options.labels_per_day} labels are more than "
            f"{_MOST_LABELS:,} to simulate; choose fewer of either",
        )
    if options.plots:
        raise RecordingError("--plots", "the task fault draws nothing; leave it out")
    grouper = Grouper(options.score_bins, options.binning)
    pool = grouper.by_predicted_class(recording) if name == PREDICTED_CLASS else grouper.by_value(recording)
    if value not in pool.names:
        known = ", ".join(pool.names[:10]) + (", ..." if len(pool.names) > 10 else "")  # noqa: PLR2004
        raise RecordingError("--fault", f"no prediction has {name} {value}; choose one of {known}")
    if len(pool.names) == 1:
        raise RecordingError("--fault", f"all predictions have {name} {value}; group by something else")
    items = with_fault(pool, pool.names.index(value), options.drop, options.seed)
    before = float(items.correct[items.groups == items.faulty].mean())
    threshold = before - options.drop / 2 if options.threshold is None else options.threshold
    if threshold >= before:
        raise RecordingError(
            "--threshold",
            f"{threshold:g} is not below {before:.3f}, the accuracy of {value} before the drop, so the alert "
            "would fire without a fault; choose a lower one",
        )
    if threshold <= before - options.drop:
        raise RecordingError(
            "--threshold",
            f"{threshold:g} is not above {before - options.drop:.3f}, the accuracy of {value} after the "
            "drop; choose a higher one",
        )
    if not _LEAST_CONFIDENCE < options.interval < 1:
        raise RecordingError(
            "--interval",
            f"{options.interval:g} is not between {_LEAST_CONFIDENCE:g} and 1, as `alerts.confidence` must "
            "be; choose another",
        )
    rules = Rules(threshold, confidence=options.interval)
    fault = Fault(before, options.drop, items.faulty)
    ways = [_way(policy, (items, fault, rules), options, crew) for policy in _policies(options)]
    ways.sort(key=lambda way: (way.simulated.alert.median, way.simulated.confirmed.median))
    return Report(
        [
            *_conclusion(
                f"{value}, one of {len(pool.names)} groups by {name},", recording.name, ways, options
            ),
            *_renamed(name),
        ],
        [_table(recording, ways, before, threshold, options)],
        _configuration(recording, name, ways[0].policy, threshold, options),
    )


def with_fault(pool: Pool, faulty: int, drop: float, seed: int) -> FaultyItems:
    """The items of a pool, with as many correct predictions of a group turned wrong as the drop needs.

    Raises:
        RecordingError: the group has too few correct predictions.
    """
    correct = pool.recording.correct
    of_group = np.flatnonzero((pool.groups == faulty) & correct)
    flipped = round(drop * int(pool.sizes[faulty]))
    if not 0 < flipped < len(of_group):
        raise RecordingError(
            "--drop",
            f"{drop:g} of {pool.sizes[faulty]} predictions in {pool.names[faulty]} are {flipped}, and "
            f"{len(of_group)} are correct; choose another drop",
        )
    after = correct.copy()
    after[np.random.default_rng([seed, faulty]).choice(of_group, flipped, replace=False)] = False
    return FaultyItems(
        pool.names, pool.groups, pool.bins, pool.bin_count, pool.recording.scores, correct, after, faulty
    )


def _policies(options: argparse.Namespace) -> list[str]:
    policies = list(dict.fromkeys(options.policy or _FAMILIES))
    if others := [policy for policy in policies if policy not in _FAMILIES]:
        raise RecordingError("--policy", f"a fault is looked for by thompson or random, not {others[0]}")
    return policies


def _way(
    policy: str, planted: tuple[FaultyItems, Fault, Rules], options: argparse.Namespace, crew: Workers
) -> _Way:
    items, fault, rules = planted
    labelling = Labelling(
        items.shares,
        options.labels_per_day,
        _FAMILIES[policy],
        half_life_days=options.half_life_days,
        days_before=options.days_before,
    )
    announced = days_to_detection(fault, labelling, rules)
    looks = look_times(announced, labelling.rate(items.faulty))
    calls = [
        (items, labelling, rules, looks, range(first, first + count), options.seed)
        for first, count in batches(options.runs, _RUNS_AT_ONCE)
    ]
    found = crew.each(_run_batch, calls, policy, [len(call[4]) for call in calls])
    together = Found(*(np.concatenate(each) for each in zip(*found, strict=True)))
    return _Way(policy, announced, Detection(_quantiles(together.alert), _quantiles(together.confirmed)))


def _run_batch(  # noqa: PLR0917 - workers pass arguments by position
    items: FaultyItems, labelling: Labelling, rules: Rules, looks: Floats, runs: range, seed: int
) -> Found:
    return run_faults(items, labelling, rules, looks, runs=runs, seed=seed)


def _quantiles(days: Floats) -> Delay:
    return Delay(*(float(np.quantile(days, share, method="higher")) for share in (0.5, 0.9)))


def _conclusion(group: str, recording: str, ways: list[_Way], options: argparse.Namespace) -> list[str]:
    best = ways[0]
    found, announced = best.simulated, best.announced
    labels = "1 label" if options.labels_per_day == 1 else f"{options.labels_per_day} labels"
    label = f"{recording}: with {labels} a day, a drop of"
    fault = f"{100 * options.drop:g} points in {group}"
    sentences = [
        f"{label} {fault} is {_found_in(found.alert)}.",
        f"Evidence that is valid however often you check confirms it: {_found_in(found.confirmed)}.",
        f"Announced without a simulation: {_found_in(announced.alert)}.",
    ]
    sentences += [
        f"With the policy {way.policy} instead of {best.policy} it is {_found_in(way.simulated.alert)}."
        for way in ways[1:]
    ]
    if not np.isfinite(found.alert.median):
        sentences.append(_ADVICE)
    return [*sentences, "The time that your labellers take comes on top."]


def _found_in(delay: Delay) -> str:
    if not np.isfinite(delay.median):
        return "not found in half of the runs"
    late = _days(delay.late) if np.isfinite(delay.late) else "longer than simulated"
    return f"found in {_days(delay.median)} (90% of runs: {late})"


def _days(days: float) -> str:
    return f"{days:.1f} days" if days < _EXACT_DAYS else f"{days:.0f} days"


def _table(
    recording: Recording, ways: list[_Way], before: float, threshold: float, options: argparse.Namespace
) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for way in ways:
        for how, found in (("simulated", way.simulated), ("announced", way.announced)):
            figures = (found.alert.median, found.alert.late, found.confirmed.median, found.confirmed.late)
            rows.append(
                (f"{way.policy}, {how}", tuple(days if np.isfinite(days) else None for days in figures))
            )
    accuracy = f"Accuracy {100 * before:.1f}% before and {100 * (before - options.drop):.1f}% after"
    begin = f"the fault begins after {options.days_before} days of labels"
    return Table(
        f"{recording.name}: days until the fault is found",
        "policy",
        ("alert, median", "alert, 90%", "confirmed, median", "confirmed, 90%"),
        rows,
        notes=(
            f"{accuracy}, threshold {100 * threshold:.1f}%; {begin}.",
            f"{options.runs} runs, seed {options.seed}. -: later than simulated.",
        ),
    )


def _attribute(name: str) -> str:
    """A recorded attribute's name as a configuration accepts it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:_LONGEST_NAME] or "attribute"


def _renamed(name: str) -> list[str]:
    """What to change where a configuration does not accept the name of a recorded attribute."""
    if name in {PREDICTED_CLASS, _attribute(name)}:
        return []
    return [f"Send the attribute as {_attribute(name)}: a name has letters, digits, `.`, `_` and `-` alone."]


def _configuration(
    recording: Recording, name: str, policy: str, threshold: float, options: argparse.Namespace
) -> str:
    """A model in YAML that looks for such faults, which `credence check` accepts."""
    by: dict[str, Any] = {"by": PREDICTED_CLASS}
    if name != PREDICTED_CLASS:
        by = {"by": "attribute", "attribute": (name := _attribute(name))}
    if name in {ALL, SCORE_BIN, POSITIVE_SCORE}:
        name = f"by-{name}"  # the other is always there
    task = "identification" if policy == "thompson" else "estimation"
    model: dict[str, Any] = {
        "classes": [str(number) for number in range(recording.classes)],
        "groupings": {name: by},
        "assessments": {
            f"faults-by-{name}": {
                "task": task,
                "grouping": name,
                "policy": policy,
                "budget": {"labels": options.labels_per_day, "per_days": 1},
            }
        },
        "alerts": {"min_accuracy": round(threshold, 4), "confidence": options.interval},
    }
    if options.half_life_days is not None:
        model["label_half_life_days"] = options.half_life_days
    found: str = yaml.safe_dump(
        {"models": {"your-model": model}}, sort_keys=False, default_flow_style=None, width=100
    )
    return found
