"""Fetches Apache Kafka and other servers once, with Maven, into folders that all test runs share."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from service.domain.errors import EmbeddedServerError

_POM = Path(__file__).with_name("pom.xml")
_FETCH_SECONDS = 600


def kafka_jars() -> Path:
    """The folder of Apache Kafka's jars; fetched at the first call on a machine.

    Raises:
        EmbeddedServerError: Java or Maven is missing, or Kafka cannot be fetched.
    """
    version = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    return fetched("Apache Kafka", f"kafka-{version}", ["-f", str(_POM), "dependency:copy-dependencies"])


def fetched(name: str, folder: str, arguments: Sequence[str]) -> Path:
    """The folder that Maven fills, given these arguments; fetched at the first call on a machine.

    Runs that fetch at once do not disturb one another: each fetches into a folder of its own, and the
    first that is whole becomes the shared one.

    Raises:
        EmbeddedServerError: Java or Maven is missing, or it cannot be fetched.
    """
    if shutil.which("java") is None:
        raise EmbeddedServerError(f"no Java was found; {name} needs version 17 or newer on the PATH")
    shared = _cache() / folder
    if not shared.exists():
        _fetch(name, arguments, shared)
    return shared


def _cache() -> Path:
    logged = os.environ.get("CREDENCE_TEST_CACHE")
    return Path(logged) if logged else Path.home() / ".cache" / "credence-test"


def _fetch(name: str, arguments: Sequence[str], shared: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EmbeddedServerError(f"no Maven was found; it fetches {name}: put mvn on the PATH")
    shared.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=shared.parent, prefix="fetching-") as folder:
        own = Path(folder) / "fetched"
        run = subprocess.run(
            [maven, "-q", "-B", *arguments, f"-DoutputDirectory={own}"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
        if run.returncode:
            raise EmbeddedServerError(f"{name} could not be fetched with Maven:\n{run.stdout[-2000:]}")
        try:
            own.rename(shared)
        except OSError:
            if not shared.exists():  # else another run was first, and has fetched the same
                raise


if __name__ == "__main__":
    print(kafka_jars())
