"""Records of trials, as JSON lines: one for every trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from findings import Findings
from trial import Fault


class Journal:
    """A file of records.

    Args:
        path: where; nothing is recorded if absent.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def add(self, test: str, seed: int, faults: Sequence[Fault], findings: Findings) -> None:
        """Record one trial."""
        if self._path is None:
            return
        record: dict[str, Any] = {
            "test": test,
            "seed": seed,
            "faults": [
                {
                    "kind": fault.kind,
                    "target": fault.target,
                    "alone": fault.alone,
                    "recovery_seconds": fault.recovery_seconds,
                }
                for fault in faults
            ],
            **asdict(findings),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
