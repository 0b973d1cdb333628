"""Runs rendered pods as processes of this machine: their commands, variables, files, probes."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import wait_for
from rendering import ROOT, Objects

PROGRAMS = {
    "credence": [sys.executable, "-m", "service.app.cli"],
    "python": [sys.executable],
}
"""What the image has on its PATH."""

SecretKeys = Mapping[tuple[str, str], str]


class LocalPod:
    """A pod that has the machine's network and a folder for the root of its file system.

    What is not as in a cluster: its mounts stand in the folder, so their paths in arguments and variables
    begin with it; its ports are the machine's; nobody bounds what it may do.

    Args:
        objects: what the chart rendered, for ConfigMaps.
        spec: of the pod.
        folder: empty.
        secrets: values of Secrets, by their name and key.
        name: of the pod.
    """

    def __init__(
        self, objects: Objects, spec: dict[str, Any], folder: Path, secrets: SecretKeys, name: str
    ) -> None:
        self.container: dict[str, Any] = spec["containers"][0]
        self.grace_seconds: float = spec.get("terminationGracePeriodSeconds", 30)
        self._folder = folder
        folder.mkdir()
        self._mounts = {
            mount["mountPath"]: folder / mount["mountPath"].lstrip("/")
            for mount in self.container.get("volumeMounts", [])
        }
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for mount in self.container.get("volumeMounts", []):
            for path, text in _content(volumes[mount["name"]], objects, secrets).items():
                file = self._mounts[mount["mountPath"]] / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self._environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        for variable in self.container.get("env", []):
            field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            value = {"metadata.name": name}[field] if field else self._here(variable["value"])
            self._environment[variable["name"]] = value
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def _here(self, text: str) -> str:
        for path, folder in self._mounts.items():
            text = text.replace(path, str(folder))
        return text

    def command(self, *more: str) -> list[str]:
        """What the container runs here; an image without a command of the pod's runs its own, `credence`."""
        program, *arguments = [*self.container.get("command", ["credence"]), *self.container.get("args", [])]
        return [*PROGRAMS[program], *(self._here(argument) for argument in arguments), *more]

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the pod to its end."""
        return subprocess.run(
            command, env=self._environment, cwd=self._folder, capture_output=True, text=True, check=False
        )

    def start(self) -> None:
        """Start its process."""
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(
                self.command(), env=self._environment, cwd=self._folder, stdout=sink, stderr=sink
            )

    def port(self, name: str) -> int:
        """The number of one of the container's ports."""
        return int({port["name"]: port["containerPort"] for port in self.container["ports"]}[name])

    def probe(self, name: str) -> bool:
        """Whether a probe succeeds, as the kubelet asks."""
        assert self.process is not None
        assert self.process.poll() is None, f"exited: {self.log.read_text()[-2000:]}"
        asked = self.container[name]["httpGet"]
        url = f"http://127.0.0.1:{self.port(asked['port'])}{asked['path']}"
        try:
            with urllib.request.urlopen(url, timeout=self.container[name].get("timeoutSeconds", 1)) as reply:
                return 200 <= reply.status < 400
        except (urllib.error.URLError, OSError):
            return False

    def await_start(self) -> None:
        """Wait as long as the startup probe lets a container, then until it is ready."""
        startup = self.container["startupProbe"]
        patience = startup["periodSeconds"] * startup["failureThreshold"]
        wait_for(lambda: self.probe("startupProbe"), seconds=patience, what=f"{self._folder.name} starts")
        wait_for(lambda: self.probe("readinessProbe"), seconds=120, what=f"{self._folder.name} is ready")

    def terminate(self) -> int:
        """End it as a cluster does, within its time of grace; the exit code."""
        assert self.process is not None
        hook = self.container.get("lifecycle", {}).get("preStop")
        if hook:
            program, *arguments = hook["exec"]["command"]
            assert self.run([*PROGRAMS[program], *arguments]).returncode == 0
        self.process.terminate()
        return self.process.wait(self.grace_seconds)

    def kill(self) -> None:
        """Leave nothing behind."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _content(volume: dict[str, Any], objects: Objects, secrets: SecretKeys) -> dict[str, str]:
    """The files of a volume."""
    if "configMap" in volume:
        found = [
            thing
            for thing in objects
            if thing["kind"] == "ConfigMap" and thing["metadata"]["name"] == volume["configMap"]["name"]
        ]
        data: dict[str, str] = found[0]["data"]
        return data
    return {
        item["path"]: secrets[source["secret"]["name"], item["key"]]
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }
