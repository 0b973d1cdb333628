"""How long commands take from start to end that need no server, beside Python alone.

Commands take turns, so that a busy machine slows all alike. Wall time is the median, CPU time the least.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.page import startup_table

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "deploy" / "compose" / "credence.yaml"

CREDENCE = ("-m", "service.app.cli")
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "credence --help": (*CREDENCE, "--help"),
    "credence --version": (*CREDENCE, "--version"),
    "credence replay --help": (*CREDENCE, "replay", "--help"),
    "credence check": (*CREDENCE, "check", "--config", str(CONFIGURATION)),
}


def run(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Wall time and CPU time of one process, in seconds; no variable of Credence changes what it does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CREDENCE_")}
    begun, used = time.perf_counter(), _cpu_of_children()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - begun, _cpu_of_children() - used


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(turns: int) -> list[dict[str, Any]]:
    """Median wall time and least CPU time of every command, in seconds."""
    for arguments in COMMANDS.values():
        run(arguments)  # compiles modules, and reads them into the page cache
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(turns):
        for name, arguments in COMMANDS.items():
            taken[name].append(run(arguments))
    return [
        {"command": name, "wall_s": median(wall for wall, _ in each), "cpu_s": min(cpu for _, cpu in each)}
        for name, each in taken.items()
    ]


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=20, help="runs of every command (default: 20)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = measure(options.turns)
    print(json.dumps(figures) if options.json else startup_table(figures))


if __name__ == "__main__":
    main()
