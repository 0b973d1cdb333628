"""What Helm makes of the chart, as objects."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm/credence"
CASES = sorted((CHART / "ci").glob("*.yaml"))
KUBERNETES = "1.37.0"
ROLES = ("labels", "predictions", "scheduler", "web")

Object = dict[str, Any]


class RefusedError(Exception):
    """Helm did not render; its text tells why."""


class Chart:
    """The chart, rendered by one version of Helm.

    Args:
        helm: path of Helm.
        path: of the chart, a folder or an archive.
    """

    def __init__(self, helm: str, path: Path = CHART) -> None:
        self.helm = helm
        self.path = path
        self._rendered: dict[str, str] = {}

    def text(self, values: Mapping[str, Any]) -> str:
        """What `helm template` writes.

        Raises:
            RefusedError: it does not.
        """
        # JSON leaves no doubt about what is text: libraries for YAML differ.
        given = json.dumps(values, ensure_ascii=False)
        if given not in self._rendered:
            self._rendered[given] = self._render(given)
        return self._rendered[given]

    def _render(self, values: str) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(values)
            file.flush()
            command = [self.helm, "template", "release", str(self.path), "--namespace", "credence"]
            command += ["--kube-version", KUBERNETES, "--values", file.name]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RefusedError(result.stderr)
        return result.stdout

    def notes(self, values: Mapping[str, Any]) -> str:
        """What Helm tells whoever installs the chart."""
        with tempfile.TemporaryDirectory() as folder:
            copied = Path(folder) / "credence"
            shutil.copytree(CHART, copied)
            # Helm tells notes with a cluster alone; an object can be had without one.
            notes = (copied / "templates/NOTES.txt").read_text()
            (copied / "templates/_notes.tpl").write_text(f'{{{{ define "notes" }}}}{notes}{{{{ end }}}}')
            (copied / "templates/notes.yaml").write_text('notes: {{ include "notes" . | quote }}')
            chart = Chart(self.helm, copied)
            return next(str(document["notes"]) for document in chart.documents(values) if "notes" in document)

    def objects(self, values: Mapping[str, Any]) -> Objects:
        """What `helm template` writes, as objects."""
        return Objects(self.documents(values))

    def documents(self, values: Mapping[str, Any]) -> Iterator[Object]:
        """The same one by one, whatever they are."""
        return (document for document in yaml.safe_load_all(self.text(values)) if document)


class Objects(list[Object]):
    """Rendered objects."""

    def of(self, kind: str) -> dict[str, Object]:
        """Objects of one kind, by the names that they have behind the release's."""
        return {
            thing["metadata"]["name"].removeprefix("release-credence").removeprefix("-"): thing
            for thing in self
            if thing["kind"] == kind
        }

    def workloads(self) -> dict[str, Object]:
        """Deployments and StatefulSets, by role."""
        return self.of("Deployment") | self.of("StatefulSet")

    def pods(self) -> Iterator[tuple[Object, Object]]:
        """Labels and spec of every pod that there may be, of hooks too."""
        for thing in self:
            if thing["kind"] == "Pod":
                yield thing["metadata"]["labels"], thing["spec"]
            elif thing["kind"] in ("Deployment", "StatefulSet", "Job"):
                template = thing["spec"]["template"]
                yield template["metadata"]["labels"], template["spec"]

    def configuration(self) -> str:
        """The text of the configuration that processes read, the same for all of them."""
        (text,) = {
            thing["data"]["credence.yaml"]
            for thing in self
            if thing["kind"] == "ConfigMap" and "credence.yaml" in thing["data"]
        }
        return str(text)


def case(name: str) -> Object:
    """The values of one of the chart's own cases."""
    values: Object = yaml.safe_load((CHART / f"ci/{name}.yaml").read_text())
    return values


def changed(values: Object, path: str, value: object) -> Object:
    """The values with another one at a path with dots."""
    result = copy.deepcopy(values)
    *parents, last = path.split(".")
    at = result
    for key in parents:
        at = at.setdefault(key, {})
    at[last] = value
    return result
