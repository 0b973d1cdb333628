"""Fetches Apache Kafka once, with Maven, into a folder that all test runs share."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from service.domain.errors import EmbeddedServerError

_POM = Path(__file__).with_name("pom.xml")
_FETCH_SECONDS = 600


def kafka_jars() -> Path:
    """The folder of Apache Kafka's jars; fetched at the first call on a machine.

    Runs that fetch at once do not disturb one another: each fetches into a folder of its own, and the
    first that is whole becomes the shared one.

    Raises:
        EmbeddedServerError: Java or Maven is missing, or Kafka cannot be fetched.
    """
    if shutil.which("java") is None:
        raise EmbeddedServerError("no Java was found; Apache Kafka needs version 17 or newer on the PATH")
    jars = _cache() / f"kafka-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"
    if not jars.exists():
        _fetch(jars)
    return jars


def _cache() -> Path:
    logged = os.environ.get("CREDENCE_TEST_CACHE")
    return Path(logged) if logged else Path.home() / ".cache" / "credence-test"


def _fetch(jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EmbeddedServerError("no Maven was found; it fetches Apache Kafka: put mvn on the PATH")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="fetching-") as folder:
        fetched = Path(folder) / "jars"
        command = [maven, "-q", "-B", "-f", str(_POM), "dependency:copy-dependencies"]
        run = subprocess.run(
            [*command, f"-DoutputDirectory={fetched}"],
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
        if run.returncode:
            raise EmbeddedServerError(f"Apache Kafka could not be fetched with Maven:\n{run.stdout[-2000:]}")
        try:
            fetched.rename(jars)
        except OSError:
            if not jars.exists():  # else another run was first, and has fetched the same
                raise


if __name__ == "__main__":
    print(kafka_jars())
