"""A configuration of `credence init` runs as it is, on the file that it was made of."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from harness import Deploy, wait_for
from samples import Init, renamed, rows

COUNT = 300


def test_the_proposal_runs_and_requests_labels_for_the_file(
    deploy: Deploy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deploy()
    capsys.readouterr()
    found = renamed(rows(COUNT), predicted_class="prediction", item_id="id", region="Sales Region")
    proposed = Init(tmp_path, capsys).of(found)
    (command,) = [line for line in proposed.text.splitlines() if "predictions send" in line]
    document = yaml.safe_load(deployment.config.read_text()) | {
        key: value for key, value in yaml.safe_load(proposed.text).items() if key not in ("kafka", "redis")
    }
    # Servers and topics of the test; all else is the proposal.
    deployment.config.write_text(yaml.safe_dump(document))
    with deployment.process("run") as process:
        words = shlex.split(command.removeprefix("#"))[1:]
        at = words.index("--config")
        sent = deployment.run_command(*words[:at], *words[at + 2 :])
        assert f"{COUNT} rows read, {COUNT} sent" in sent.stdout

        def open_requests() -> float:
            lines = process.get("/metrics")[1].splitlines()
            return sum(
                float(line.split()[-1]) for line in lines if line.startswith("credence_requests_open{")
            )

        wait_for(open_requests, seconds=60, what="label requests")
        assert "north" in process.get("/api/v1/models/sorter")[1]
