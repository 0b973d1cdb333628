"""A real Prometheus, a real Alertmanager, and a receiver for what Alertmanager sends.

The first two are child processes on free ports of 127.0.0.1, with their data in a given folder; a child
dies with its parent. A server of the system, on the usual port, does not matter. All three are context
managers.
"""

from __future__ import annotations

import json
import shutil
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from service.demo.ports import free_port
from service.demo.servers import Child
from service.domain.errors import EmbeddedServerError

Sample = tuple[dict[str, str], float]

_START_SECONDS = 120.0
"""Patience with a server that starts on a busy machine."""

_ALONE = "--cluster.listen-address="
"""An Alertmanager neither listens for peers nor waits for them."""


def binary(*names: str) -> str:
    """The first of these programs that is on the PATH.

    Raises:
        EmbeddedServerError: none is.
    """
    for name in names:
        if found := shutil.which(name):
            return found
    raise EmbeddedServerError(f"no {names[0]} was found; install it (Debian: apt-get install {names[-1]})")


def scrape(job: str, targets: Iterable[str], *, seconds: float = 1, **more: Any) -> dict[str, Any]:
    """A scrape configuration: one job with fixed targets, as host:port."""
    return {
        "job_name": job,
        "scrape_interval": f"{round(1000 * seconds)}ms",
        "scrape_timeout": f"{round(1000 * seconds)}ms",
        "static_configs": [{"targets": list(targets)}],
    } | more


class _Server(Child):
    """A server of the Prometheus project, with its configuration, data and log in a folder."""

    def __init__(
        self,
        name: str,
        program: str,
        folder: Path,
        config: Mapping[str, Any],
        *,
        storage: str,
        options: Sequence[str],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name.lower()}.log"
        path = folder / f"{name.lower()}.yaml"
        path.write_text(yaml.safe_dump(dict(config), sort_keys=False))
        with self.log.open("wb") as sink:
            super().__init__(
                name,
                [
                    program,
                    f"--config.file={path}",
                    f"--{storage}={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--log.level=warn",
                    *options,
                ],
                output=sink,
            )
        _wait_until_ready(self, f"{self.url}/-/ready", self.log)


class Prometheus(_Server):
    """A Prometheus that is ready once it is constructed.

    Args:
        folder: for its configuration, its data and its log; made where it is missing.
        config: what its configuration file says, such as `{"scrape_configs": [scrape("credence", [...])],
            "rule_files": [...], "global": {...}, "alerting": alerting_to(alertmanager)}`.
        options: more of its command line.

    Attributes:
        url: of its web face, for data sources and for `curl`.

    Raises:
        EmbeddedServerError: it is not installed, or does not start.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], *, options: Sequence[str] = ()) -> None:
        super().__init__(
            "Prometheus", binary("prometheus"), folder, config, storage="storage.tsdb.path", options=options
        )

    def get(self, path: str, **parameters: str) -> Any:
        """What one of the paths below /api/v1 answers: the `data` of the reply."""
        return get_json(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")["data"]

    def query(self, expression: str, **parameters: str) -> list[Sample]:
        """The instant vector that an expression gives now, or at `time`: labels and value of every sample."""
        result = self.get("query", query=expression, **parameters)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in result]

    def value(self, expression: str) -> float | None:
        """The value of the one sample that an expression gives; None where it gives none."""
        samples = self.query(expression)
        assert len(samples) <= 1, f"{expression} gives {len(samples)} samples"
        return samples[0][1] if samples else None

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that are pending or firing, with labels, annotations and state."""
        return list(self.get("alerts")["alerts"])


def alerting_to(alertmanager: Alertmanager) -> dict[str, Any]:
    """What the `alerting` section of a Prometheus configuration says to send alerts to this Alertmanager."""
    return {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager.port}"]}]}]}


class Alertmanager(_Server):
    """An Alertmanager that is ready once it is constructed.

    Args:
        folder: for its configuration, its data and its log; made where it is missing.
        config: what its configuration file says.

    Attributes:
        url: of its web face.

    Raises:
        EmbeddedServerError: it is not installed, or does not start.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().__init__(
            "Alertmanager",
            binary("alertmanager", "prometheus-alertmanager"),
            folder,
            config,
            storage="storage.path",
            options=[_ALONE],
        )

    def post(self, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Take alerts as if Prometheus had sent them: each with `labels`, perhaps `annotations`, `endsAt`."""
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts",
            data=json.dumps(list(alerts)).encode(),
            headers={"content-type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=60).close()

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts that it knows, with `status`, which tells whether one is inhibited."""
        return list(get_json(f"{self.url}/api/v2/alerts"))


class WebhookReceiver:
    """An HTTP server that collects what an Alertmanager posts to its `url`."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._payloads: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver._take(payload | {"path": self.path})
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Keep the output of the tests clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def _take(self, payload: dict[str, Any]) -> None:
        with self._condition:
            self._payloads.append(payload)

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """All notifications so far, oldest first; each as posted, with the `path` that it was posted to."""
        with self._condition:
            return list(self._payloads)

    def alerts(self, *, status: str | None = None, **labels: str) -> list[dict[str, Any]]:
        """All alerts of all notifications that have this status (`firing`, `resolved`) and these labels."""
        return [
            alert
            for payload in self.payloads
            for alert in payload.get("alerts", [])
            if status in {None, alert["status"]} and labels.items() <= alert["labels"].items()
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


StartPrometheus = Callable[[Mapping[str, Any]], Prometheus]
StartAlertmanager = Callable[[Mapping[str, Any]], Alertmanager]


def get_json(url: str) -> Any:
    """What a URL answers, as JSON; a refusal is an error that quotes the reply."""
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{url}: {error.code} {error.read().decode()[:500]}") from error


def _wait_until_ready(server: Child, url: str, log: Path) -> None:
    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=1) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    try:
        server.wait_until(ready, seconds=_START_SECONDS)
    except EmbeddedServerError as error:
        raise EmbeddedServerError(f"{error}: {log.read_text()[-2000:]}") from error
