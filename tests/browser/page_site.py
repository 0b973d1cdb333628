"""What the tests of the status page look at: a deployment whose page is served."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from harness import Deployment, Labeller, Process, prediction, truth
from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=\"document.title='taken over'\">"
SURE = 0.998

Open = Callable[..., Page]
Shown = Callable[..., Page]


def truth_of_a_weak_south(number: int) -> str:
    """The true class of one item; in the south two of three predictions are wrong.

    So far below the target that no luck in choosing items can hide it.
    """
    item = prediction(number)
    if item["attributes"]["region"] != "south" or number % 3 == 0:
        return truth(number)
    return "owl" if item["predicted_class"] == "cat" else "cat"


@dataclass(frozen=True)
class Site:
    """A deployment whose south is known to be weak, with labels to spare."""

    deployment: Deployment
    process: Process
    labeller: Labeller

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.process.page_port}"

    def api(self, path: str, **query: object) -> Any:
        """A document of the API."""
        given = f"?{urllib.parse.urlencode(query)}" if query else ""
        with urllib.request.urlopen(f"{self.url}/api/v1{path}{given}", timeout=60) as reply:
            return json.loads(reply.read())

    def is_south_found(self) -> bool:
        """Whether the weak group is known to be weak so surely that a few labels more cannot change it.

        Answers what is asked meanwhile.
        """
        self.labeller.answer()
        status, body = self.process.get("/api/v1/models/sorter")
        found = json.loads(body)["problems"] if status == HTTPStatus.OK else []
        return any(
            one["kind"] == "accuracy_low" and one["group"] == "south" and one["probability"] > SURE
            for one in found
        )
