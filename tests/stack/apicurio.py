"""The schema registry Apicurio as a child process, in memory, with the REST API of Confluent's."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kafka_distribution import fetched

from service.demo.ports import free_port
from service.demo.servers import Child

_VERSION = "3.0.9"
"""The last one that runs on Java 17."""

_ARTIFACT = f"io.apicurio:apicurio-registry-app:{_VERSION}:tar.gz:all"
_START_SECONDS = 90.0


class Apicurio:
    """A registry that can be paused; a context manager.

    What was registered is in memory, so it would be lost if the registry were stopped and started.

    Attributes:
        url: of the API that is compatible with Confluent's.
    """

    def __init__(self) -> None:
        self._folder = fetched(
            "Apicurio", f"apicurio-{_VERSION}", ["dependency:unpack", f"-Dartifact={_ARTIFACT}"]
        )
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"
        self._child: Child | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        java = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
        port = f"-Dquarkus.http.port={self._port}"
        jar = self._folder / f"apicurio-registry-app-{_VERSION}-runner.jar"
        self._child = Child("Apicurio", [*java, port, "-Dquarkus.http.host=127.0.0.1", "-jar", str(jar)])
        self._child.wait_until(self._answers, seconds=_START_SECONDS)

    def stop(self) -> None:
        """Kill it; connections are refused from now on."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def pause(self) -> None:
        """Stop its process with SIGSTOP: it accepts connections, and does not answer."""
        assert self._child is not None, "start it first"
        self._child.pause()

    def resume(self) -> None:
        """Let it answer again."""
        assert self._child is not None, "start it first"
        self._child.resume()

    def register(
        self, subject: str, schema: Any, *, kind: str = "AVRO", references: Sequence[dict[str, Any]] = ()
    ) -> int:
        """Register a schema; its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            number: int = json.load(reply)["id"]
        return number

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False
