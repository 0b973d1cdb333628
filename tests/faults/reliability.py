"""Writes the table of `docs/reliability.md` from the records of trials.

python tests/faults/reliability.py RECORDS            # write it
python tests/faults/reliability.py RECORDS --check    # only look whether every record is without a fault
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN = "<!-- The table is written by `make reliability`. -->"
END = "<!-- End of the table. -->"


@dataclass
class Tried:
    """One kind of fault in all trials.

    Attributes:
        times: how often it struck.
        recovery_seconds: of every time.
        recovery_seconds_alone: of those times when no fault of another kind was there.
    """

    times: int = 0
    recovery_seconds: list[float] = field(default_factory=list)
    recovery_seconds_alone: list[float] = field(default_factory=list)


def table_of(records: Sequence[dict[str, Any]]) -> str:
    """What all trials came to, as Markdown."""
    tried: dict[str, Tried] = defaultdict(Tried)
    for record in records:
        one_kind = len({fault["kind"] for fault in record["faults"]}) == 1
        for fault in record["faults"]:
            kind = tried[fault["kind"]]
            kind.times += 1
            if fault["recovery_seconds"] is not None:
                kind.recovery_seconds.append(fault["recovery_seconds"])
                if fault["alone"] or one_kind:
                    kind.recovery_seconds_alone.append(fault["recovery_seconds"])
    counted = ("predictions", "counted", "requests", "further_requests", "labels", "gold_labels")
    total = {name: sum(record[name] for record in records) for name in counted}
    summary = (
        f"{len(records)} trials, {sum(kind.times for kind in tried.values())} faults; "
        f"{total['predictions']:,} predictions in the topics, {total['counted']:,} counted; "
        f"{total['requests']:,} label requests, {total['further_requests']:,} of them to a second person or "
        f"a later one; {total['labels']:,} labels, {total['gold_labels']:,} of gold items that count; "
        f"checks that failed: {sum(len(record['problems']) for record in records)}."
    )
    lines = [
        summary,
        "",
        "| fault | tried | lost or counted twice | median recovery (s) | worst (s) | worst of all (s) |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for name, kind in sorted(tried.items()):
        wrong = sum(
            abs(record["predictions"] - record["counted"])
            for record in records
            if any(fault["kind"] == name for fault in record["faults"])
        )
        alone, ever = kind.recovery_seconds_alone, kind.recovery_seconds
        times = [f"{median(alone):.1f}", f"{max(alone):.1f}"] if alone else ["", ""]
        times.append(f"{max(ever):.1f}" if ever else "")
        lines.append(f"| {name} | {kind.times} | {wrong} | {' | '.join(times)} |")
    return "\n".join(lines)


def _read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or look at the records; the exit code."""
    parser = argparse.ArgumentParser(description="Write the table of docs/reliability.md.")
    parser.add_argument("records", nargs="+", type=Path, help="files that --fault-records wrote")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a trial did")
    options = parser.parse_args(arguments)
    records = _read(options.records)
    table = table_of(records)
    if not options.check:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    sys.stdout.write(f"{table}\n")
    return int(any(record["problems"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
