"""The real Label Studio: it takes our configuration and tasks, and we take its webhooks and exports.

`.ci/label_studio.sh` installs it apart from everything else and runs this; LABEL_STUDIO names its command.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import wait_for
from office import TOKENS, V1, Caller, Office

from service.demo.ports import free_port
from service.demo.servers import Child
from service.store.connection import Connection

BASE = "/models/m/label-studio"
START_SECONDS = 600.0
SETTINGS = ("SSRF_PROTECTION_ENABLED", "COLLECT_ANALYTICS", "LATEST_VERSION_CHECK")
SECONDS = 60.0


class LabelStudio:
    """One installation, with an empty database."""

    def __init__(self, command: str, folder: Path) -> None:
        self._token = secrets.token_hex(20)
        self._port = free_port()
        log = folder / "label-studio.log"
        with log.open("wb") as sink:
            self.child = Child(
                "Label Studio",
                [
                    command, "start", "--no-browser", "--log-level", "WARNING",
                    "--data-dir", str(folder), "--internal-host", "127.0.0.1", "--port", str(self._port),
                    "--username", "labels@credence.example", "--password", secrets.token_hex(12),
                    "--user-token", self._token, "--enable-legacy-api-token",
                ],
                output=sink,
                # It refuses to call addresses of this machine, unless configured otherwise.
                environment=os.environ | dict.fromkeys(SETTINGS, "false"),
            )  # fmt: skip
        self.child.wait_until(self._healthy, seconds=START_SECONDS)

    def _healthy(self) -> bool:
        try:
            return self._exchange("GET", "/health")[0] == 200
        except OSError:
            return False

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A call of its API that succeeds."""
        status, text = self._exchange(method, path, body)
        assert 200 <= status < 300, (method, path, status, text[:500])
        return json.loads(text) if text else None

    def _exchange(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        headers = {"Authorization": f"Token {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def project(self, configuration: str, tasks: list[Any]) -> tuple[int, dict[str, int]]:
        """A project with tasks; its id, and the tasks' ids by the request's."""
        made = self.call("POST", "/api/projects", {"title": "sorter", "label_config": configuration})
        number: int = made["id"]
        imported = self.call("POST", f"/api/projects/{number}/import", tasks)
        assert imported["task_count"] == len(tasks)
        kept = self.call("GET", f"/api/tasks?project={number}&page_size=100")["tasks"]
        return number, {task["data"]["request_id"]: task["id"] for task in kept}

    def annotate(self, task: int, choice: str | None) -> int:
        """What a person chooses, or that it is skipped; the annotation's id."""
        body = chosen(choice) if choice else {"result": [], "was_cancelled": True}
        made: int = self.call("POST", f"/api/tasks/{task}/annotations", body)["id"]
        return made

    def export(self, project: int, kind: str) -> Any:
        return self.call("GET", f"/api/projects/{project}/export?exportType={kind}")


def chosen(choice: str) -> dict[str, Any]:
    """What its editor sends."""
    result = {"from_name": "true_class", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}
    return {"result": [result]}


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    command = os.environ.get("LABEL_STUDIO")
    if command is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("LABEL_STUDIO is to name its command")
        pytest.skip("LABEL_STUDIO names no command")
    server = LabelStudio(command, tmp_path_factory.mktemp("label-studio"))
    yield server
    server.child.stop()


@pytest.fixture
def office(connection: Connection, bootstrap_servers: str) -> Iterator[Office]:
    with Office(connection, bootstrap_servers) as office:
        office.ask(20)
        yield office


def claimed(acme: Caller, most: int) -> list[Any]:
    tasks: list[Any] = acme.post(f"{BASE}/tasks", {"most": most}).body
    assert len(tasks) == most
    return tasks


def configuration(acme: Caller) -> str:
    text: str = acme.get(f"{BASE}/config?shown=text").body
    return text


def test_an_annotation_is_an_answer_by_webhook(label_studio: LabelStudio, office: Office) -> None:
    acme = office.caller("acme")
    tasks = claimed(acme, 2)
    project, ids = label_studio.project(configuration(acme), tasks)
    label_studio.call(
        "POST",
        "/api/webhooks/",
        {
            "url": f"http://127.0.0.1:{office.server.port}{V1}{BASE}/webhook",
            "project": project,
            "send_payload": True,
            "send_for_all_actions": True,
            "headers": {"Authorization": f"Bearer {TOKENS['acme']}"},
        },
    )
    with office.reading():
        first, second = (ids[task["data"]["request_id"]] for task in tasks)
        annotation = label_studio.annotate(first, "dog")
        office.await_outcomes("dog")
        label_studio.call("PATCH", f"/api/annotations/{annotation}", chosen("owl"))
        office.await_outcomes("dog", "owl")
        label_studio.call("DELETE", f"/api/annotations/{annotation}")
        office.await_outcomes("dog", "owl", "")
        label_studio.annotate(second, None)
        skipped = "credence_vendor_labels_total"
        wait_for(
            lambda: office.sample(skipped, vendor="acme", model="m", kind="skip") == 1,
            seconds=SECONDS,
            what="the skip",
        )
    assert office.site.letters.reasons == []


def test_an_export_is_imported_in_either_format(label_studio: LabelStudio, office: Office) -> None:
    acme = office.caller("acme")
    tasks = claimed(acme, 3)
    project, ids = label_studio.project(configuration(acme), tasks)
    for task, choice in zip(tasks, ("cat", "owl", None), strict=True):
        label_studio.annotate(ids[task["data"]["request_id"]], choice)
    with office.reading():
        found = acme.post(f"{BASE}/annotations", label_studio.export(project, "JSON"))
        assert [one["state"] for one in found.body["tasks"]] == ["submitted"] * 3
        wait_for(lambda: sorted(office.true_classes()) == ["cat", "owl"], seconds=SECONDS, what="outcomes")
        again = acme.post(f"{BASE}/annotations", label_studio.export(project, "JSON_MIN"))
        assert {one["state"] for one in again.body["tasks"]} == {"unchanged"}
        assert {one["request_id"] for one in again.body["tasks"]} <= {t["data"]["request_id"] for t in tasks}
    assert office.site.letters.reasons == []


@pytest.mark.parametrize("shown", ["image", "audio", "video", "text"])
def test_it_takes_every_configuration(label_studio: LabelStudio, office: Office, shown: str) -> None:
    acme = office.caller("acme")
    text = acme.get(f"{BASE}/config?shown={shown}").body
    project, _ = label_studio.project(text, claimed(acme, 1))
    kept = label_studio.call("GET", f"/api/projects/{project}")
    assert kept["parsed_label_config"]["true_class"]["labels"] == ["cat", "dog", "owl"]
