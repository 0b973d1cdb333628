"""The snippets of docs/connect.md, and how tests run them: as they are, but for addresses and topics."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from harness import Deployment, wait_for
from stored import stored_cells

PAGE = (Path(__file__).parents[2] / "docs/connect.md").read_text()


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    (found,) = re.findall(rf"^###? {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return found


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def marked(mark: str, language: str) -> str:
    """The block below a comment, which readers do not see."""
    (found,) = re.findall(rf"^<!-- {mark} -->\n```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return found


def at(deployment: Deployment, snippet: str) -> str:
    """A snippet with the Kafka of a deployment, and with its topics."""
    kafka = deployment.settings.kafka.model_dump(include={"bootstrap_servers", "topics"})
    snippet = snippet.replace('kafka="127.0.0.1:9092"', f"kafka={kafka!r}")
    snippet = snippet.replace("127.0.0.1:9092", deployment.broker)
    snippet = snippet.replace("sorter-input", f"{deployment.name}.sorter-input")
    return re.sub(r"\bcredence\.(predictions|label-requests|labels)\b", rf"{deployment.name}.\1", snippet)


def tensors_of(server: str) -> str:
    """The model of a server's section, as YAML."""
    (text,) = [text for text in blocks(section(server), "yaml") if text.startswith("# credence.yaml")]
    model: dict[str, Any] = yaml.safe_load(text)["models"]["sorter"]
    return yaml.safe_dump(model)


def run(deployment: Deployment, title: str) -> None:
    """Run the Python of a section as a program of its own."""
    (code,) = blocks(section(title), "python")
    command = [sys.executable, "-c", at(deployment, code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def running(deployment: Deployment, title: str) -> Iterator[None]:
    """The Python of a section, which runs until the block ends."""
    (code,) = blocks(section(title), "python")
    with subprocess.Popen([sys.executable, "-c", at(deployment, code)]) as process:
        try:
            yield
            assert process.poll() is None, "the program has ended"
        finally:
            process.kill()


def counted(deployment: Deployment, kind: str, predictions: int) -> Counter[str]:
    """Have Credence read the topic until it counts so many predictions; how many of each region or class."""
    with deployment.process("consume", "predictions"):
        wait_for(lambda: deployment.predictions_stored() == predictions, seconds=60, what="the predictions")
    counts: Counter[str] = Counter()
    for (table, name, _), count in stored_cells(deployment).items():
        counts[name] += count if table == kind else 0
    return +counts
