"""What the patch of docs/kafka-python saves: decoding of a fetch with and without it, in turns.

python -m benchmarks.patched_client
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import kafka

_PATCH: Final = Path(__file__).parents[1] / "docs" / "kafka-python" / "fast-fetch.patch"

_DECODE: Final = """
import time
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

builder = MemoryRecordsBuilder(2, 0, 10_000_000, offset=0)
for at in range(2_000):
    builder.append(1_700_000_000_000 + at, b"item-%d" % at, b"x" * 150, [])
builder.close()
data = bytes(builder.buffer())
best = float("inf")
for _ in range(50):
    begin = time.process_time()
    Fetcher.PartitionRecords(0, TopicPartition("t", 0), MemoryRecords(data)).take()
    best = min(best, time.process_time() - begin)
print(best / 2_000 * 1e6)
"""


def microseconds_per_record(sources: Path) -> float:
    """CPU time of decoding one record with the client in a folder; the least of 50 fetches."""
    run = subprocess.run(
        [sys.executable, "-c", _DECODE],
        env=os.environ | {"PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout)


def main() -> None:
    """Print the cost of a record in every turn."""
    parser = argparse.ArgumentParser(description="Measure what the patch of kafka-python saves.")
    parser.add_argument("--turns", type=int, default=3, help="(default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(Path(kafka.__file__).parent, folder / "kafka")
        subprocess.run(["git", "apply", str(_PATCH)], cwd=folder, check=True)
        print(f"{'client':<12} {'us per record':>13}")
        for _ in range(options.turns):
            for client, sources in (("as released", Path(kafka.__file__).parents[1]), ("patched", folder)):
                print(f"{client:<12} {microseconds_per_record(sources):>13.2f}")


if __name__ == "__main__":
    main()
