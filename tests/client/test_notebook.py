"""The notebook for a first model: its cells run in order, and it is kept without outputs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import Deploy, wait_for

NOTEBOOK = Path(__file__).parents[2] / "docs/notebooks/first-model.ipynb"
RUN_CELLS = """
import json, sys

names = {}
for cell in json.load(sys.stdin):
    exec(cell, names)
"""


def cells(kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == kind]


def test_the_cells_of_the_notebook_narrow_the_intervals_of_both_regions(deploy: Deploy) -> None:
    pytest.importorskip("sklearn")
    (configuration,) = re.findall(r"```yaml\n(.*?)```", "".join(cells("markdown")[0]["source"]), re.DOTALL)
    model = yaml.safe_load(configuration)["models"]["sorter"]
    deployment = deploy(
        assessments=yaml.safe_dump(model["assessments"], default_flow_style=True), partitions=1
    )
    kafka = deployment.settings.kafka.model_dump(include={"bootstrap_servers", "topics"})
    with deployment.process("run") as process:
        wait_for(process.ready, seconds=60, what="readiness")
        code = [
            "".join(cell["source"])
            .replace('kafka="127.0.0.1:9092"', f"kafka={kafka!r}")
            .replace(":8400", f":{process.page_port}")
            for cell in cells("code")
        ]
        done = subprocess.run(
            [sys.executable, "-c", RUN_CELLS],
            input=json.dumps(code),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["north", "south"] * 3
    assert all(line.endswith("0 labels") for line in lines[:2])
    assert widths(lines[2:4]) < widths(lines[:2])


def widths(lines: list[str]) -> float:
    """The summed widths of printed intervals, in points."""
    ends = [line.partition("(")[2].partition(")")[0].replace("%", "").split(" to ") for line in lines]
    return sum(float(upper) - float(lower) for lower, upper in ends)


def test_the_notebook_is_kept_without_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells("code"))
