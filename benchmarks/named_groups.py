"""Whether `credence try` reports the group in which a recorded classifier is weak, over several seeds.

Each recording of `benchmarks.planted` gets the configuration that a trial of its file has. Its rows go
through the service's own consumers, store and rounds, on a real Redis, with a clock of its own; their true
classes answer. For every kind it prints in how many runs the planted group was reported, how often others
were, and how many of these meet the threshold in the file.

    python -m benchmarks.named_groups --kind tabular --runs 8
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.flushes import Record
from benchmarks.planted import KINDS, Recording
from benchmarks.site import MODEL, Site, open_site, settings_of
from service.app.cli import build_parser
from service.app.init_command import profile_file, wishes_of
from service.app.proposal.commented_yaml import document
from service.app.proposal.propose import Proposal, propose
from service.app.trial.configuration import default_labels, trial_assessments
from service.demo.servers import EmbeddedRedis
from service.monitoring.snapshot import ModelSnapshot
from service.replay.tables import Cell, Table, print_tables
from service.store.labels import LabelEvent

_BATCH_ROWS = 8_000
"""Rows that a trial streams in a second."""

_BEGAN = 1_800_000_000.0
_LEASE_SECONDS = 60.0
_MOST_ROUNDS = 200
_QUIET_ROUNDS = 3


@dataclass(frozen=True)
class Result:
    """What came of one run.

    Attributes:
        labels: that were used.
        is_named: whether the planted group is reported to be below the threshold.
        is_confirmed: whether evidence confirms it.
        others: further groups that are reported.
        wrong: those of them that meet the threshold in the file.
        lower: of the interval of the planted group.
        upper: of it.
    """

    labels: int
    is_named: bool
    is_confirmed: bool
    others: int
    wrong: int
    lower: float
    upper: float


def proposal_of(recording: Recording) -> Proposal:
    """What `credence try` proposes for the file."""
    with tempfile.TemporaryDirectory(prefix="credence-planted-") as folder:
        path = Path(folder) / "predictions.csv"
        recording.write(path)
        options = build_parser().parse_args(["try", str(path)])
        return propose(profile_file(options), wishes_of(options))


def run(recording: Recording, redis_url: str, *, seed: int, labels: int | None) -> Result:
    """One trial of a recording.

    Args:
        recording: whose file is tried.
        redis_url: of the Redis that is used.
        seed: of policies and of what is drawn.
        labels: the budget; None for the default.
    """
    proposal = proposal_of(recording)
    model = document(proposal.entries)["models"][proposal.model]
    budget = labels or default_labels(proposal, is_answered=True)
    model["assessments"] = trial_assessments(
        model["assessments"], labels=budget, lease_seconds=_LEASE_SECONDS
    )
    attributes = {name: each["attribute"] for name, each in model["groupings"].items() if "attribute" in each}
    records = _records(recording, list(attributes.values()))
    truths = {str(item): str(true) for item, true in zip(*_of(recording, "id", "label"), strict=True)}
    with open_site(settings_of(model, redis_url), np.random.default_rng(seed)) as site:
        snapshot, used = _tried(site, records, truths)
    return _result(recording, snapshot, attributes, model["alerts"]["min_accuracy"], used)


def _of(recording: Recording, *columns: str) -> list[Sequence[object]]:
    return [recording.columns[name] for name in columns]


def _records(recording: Recording, attributes: Sequence[str]) -> list[bytes]:
    rows = zip(*_of(recording, "id", "predicted", "score", *attributes), strict=True)
    return [
        msgspec.json.encode(
            {
                "model": MODEL,
                "item_id": item,
                "predicted_class": predicted,
                "score": score,
                "attributes": dict(zip(attributes, map(str, values), strict=True)),
            }
        )
        for item, predicted, score, *values in rows
    ]


def _tried(site: Site, records: Sequence[bytes], truths: Mapping[str, str]) -> tuple[ModelSnapshot, int]:
    """The last estimates, and the labels used, once no more are requested."""
    now, streamed, used, quiet = _BEGAN, 0, 0, 0
    for _ in range(_MOST_ROUNDS):
        now += 1
        batch = records[streamed : streamed + _BATCH_ROWS]
        if batch:
            messages = [Record(streamed + at, int(1_000 * now), each) for at, each in enumerate(batch)]
            site.take_in([messages], now)
            streamed += len(batch)
        snapshot = site.refresh(now)
        asked = site.ask(now)
        site.answer([_answer(request, truths, now) for request in asked], now)
        used += len(asked)
        quiet = 0 if asked else quiet + 1
        if quiet == _QUIET_ROUNDS:
            break
    return snapshot, used


def _answer(request: Mapping[str, Any], truths: Mapping[str, str], now: float) -> LabelEvent:
    item = request["item_id"]
    digest = hashlib.blake2b(item.encode(), digest_size=8).hexdigest()
    return LabelEvent(request["request_id"], item, "answer", truths[item], digest, now, "file")


def _result(
    recording: Recording,
    snapshot: ModelSnapshot,
    attributes: Mapping[str, str],
    threshold: float,
    used: int,
) -> Result:
    right = np.array(recording.columns["predicted"]) == np.array(recording.columns["label"])
    others = wrong = 0
    for name in (*attributes, "class"):
        column = np.array([str(each) for each in recording.columns[attributes.get(name, "predicted")]])
        grouping = snapshot.groupings[name]
        for group in np.array(grouping.groups)[grouping.low].tolist():
            if (attributes.get(name), group) != (recording.column, recording.group):
                others += 1
                wrong += bool(right[column == group].mean() >= threshold)
    planted = next(name for name, column in attributes.items() if column == recording.column)
    grouping = snapshot.groupings[planted]
    at = grouping.groups.index(recording.group)
    return Result(
        used,
        bool(grouping.low[at]),
        grouping.evidence is not None and bool(grouping.evidence.alarming[at]),
        others,
        wrong,
        float(grouping.accuracy.lower[at]),
        float(grouping.accuracy.upper[at]),
    )


def table(results: Mapping[str, Sequence[Result]]) -> Table:
    """How often the planted group is reported."""
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (
            kind,
            (
                len(found),
                float(np.mean([one.labels for one in found])),
                sum(one.is_named for one in found),
                sum(one.is_confirmed for one in found),
                sum(one.others for one in found),
                sum(one.wrong for one in found),
            ),
        )
        for kind, found in results.items()
    ]
    return Table(
        "planted weak groups that a trial reports",
        "file",
        ("runs", "labels", "planted group reported", "confirmed", "others reported", "of these wrong"),
        rows,
    )


def main() -> None:
    """Print a row a run, and a table of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS, action="append", help="repeatable (default: all)")
    parser.add_argument("--runs", type=int, default=8, help="(default: 8)")
    parser.add_argument("--rows", type=int, default=5_000, help="of a file (default: 5,000)")
    parser.add_argument("--labels", type=int, help="(default: that of credence try)")
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    options = parser.parse_args()
    results: dict[str, list[Result]] = {}
    with EmbeddedRedis() as server:
        for kind in options.kind or KINDS:
            for seed in range(options.runs):
                recording = KINDS[kind](np.random.default_rng(seed), options.rows)
                found = run(recording, server.url, seed=seed, labels=options.labels)
                results.setdefault(kind, []).append(found)
                line = {"kind": kind, "seed": seed, "accuracies": recording.accuracies} | msgspec.to_builtins(
                    found
                )
                print(json.dumps(line), file=sys.stderr, flush=True)
    print_tables([table(results)], as_json=False, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
