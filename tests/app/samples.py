"""Samples of predictions as files, and `credence init` of them in this process."""

from __future__ import annotations

import csv
import json
import random
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from kafka import KafkaProducer
from kafka.admin import NewTopic

from service.app.cli import main
from service.config.settings import KafkaSettings
from service.kafka.clients import build_admin

CLASSES = ("cat", "dog", "owl")
ROWS = 400


class Proposed(NamedTuple):
    """What a run of the command says."""

    code: int
    text: str
    error: str

    @property
    def model(self) -> dict[str, Any]:
        """The only model of the configuration."""
        (model,) = yaml.safe_load(self.text)["models"].values()
        return dict(model)

    @property
    def comments(self) -> str:
        """All comments as one line of text, without where lines end."""
        lines = (line.strip() for line in self.text.splitlines())
        return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def rows(count: int = ROWS, *, accuracy: float = 0.9, **columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Predictions with true classes, an attribute, and further columns; none of the usual ones is missing."""
    rng = random.Random(1)
    found = []
    for number in range(count):
        predicted = rng.choice(CLASSES)
        others = [name for name in CLASSES if name != predicted]
        row = {
            "item_id": f"item-{number:06d}",
            "predicted_class": predicted,
            "score": round(rng.uniform(0.6, 1.0), 3),
            "true_class": predicted if rng.random() < accuracy else rng.choice(others),
            "region": rng.choice(["north", "south", "east"]),
        }
        found.append(row | {name: values[number] for name, values in columns.items()})
    return found


def renamed(found: Sequence[Mapping[str, Any]], **names: str | None) -> list[dict[str, Any]]:
    """Rows with other names of columns; None leaves a column out."""
    kept = [{names.get(key, key): value for key, value in row.items()} for row in found]
    return [{key: value for key, value in row.items() if key is not None} for row in kept]


def write_csv(path: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    """A file of rows that all have the same columns."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return path


def write_jsonl(path: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    """The same as JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in found), encoding="utf-8")
    return path


class Init:
    """Runs `credence init`.

    Args:
        folder: for files.
        capsys: of the test.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Proposed:
        code = main(["init", *map(str, arguments)])
        return Proposed(code, *self._capsys.readouterr())

    def of(self, found: Sequence[Mapping[str, Any]], *options: str) -> Proposed:
        """Of rows in a CSV file."""
        return self(write_csv(self.folder / "sorter.csv", found), *options)

    def check(self, proposed: Proposed, *options: str) -> tuple[int, str]:
        """What `credence check` says of the configuration, as it is."""
        assert proposed.code == 0, proposed.error
        path = self.folder / "credence.yaml"
        path.write_text(proposed.text, encoding="utf-8")
        code = main(["check", "--config", str(path), *options])
        return code, "".join(self._capsys.readouterr())


def uncommented(text: str) -> list[str]:
    """Keys that have no comment right above them."""
    lines = text.splitlines()
    return [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if line.strip() and not line.lstrip().startswith("#") and not above.lstrip().startswith("#")
    ]


class Topic:
    """A topic of two partitions.

    Args:
        server: of Kafka.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.renew()

    def renew(self) -> None:
        """Go on with a topic that has no records."""
        self.name = f"predictions-{secrets.token_hex(4)}"
        with closing(build_admin(KafkaSettings(bootstrap_servers=[self.server]))) as admin:
            admin.create_topics([NewTopic(self.name, num_partitions=2, replication_factor=1)])

    def send(
        self,
        values: Sequence[bytes],
        *,
        headers: list[tuple[str, bytes]] | None = None,
        keys: Sequence[bytes] | None = None,
    ) -> None:
        """Write records in turn to both partitions; all have the same headers."""
        producer = KafkaProducer(bootstrap_servers=self.server)
        for number, value in enumerate(values):
            key = None if keys is None else keys[number]
            producer.send(self.name, value, key=key, partition=number % 2, headers=headers or [])
        producer.close(timeout=20)

    def options(self, records: int = 10_000) -> list[str]:
        """Of the command."""
        return ["--topic", self.name, "--records", str(records), "--bootstrap-servers", self.server]
