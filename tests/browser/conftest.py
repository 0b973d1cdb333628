"""A real Chromium in front of a real Credence; what is missing skips locally and fails in CI."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from browsers import attentive
from harness import Deployment, Labeller, prediction, wait_for
from label_site import sit  # noqa: F401 - a fixture
from missing_programs import program
from page_site import HOSTILE, Open, Shown, Site, truth_of_a_weak_south
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from snapshots import NOW

from service.demo.servers import EmbeddedRedis
from service.monitoring.pipeline import PipelineState
from service.monitoring.snapshot import ModelSnapshot
from service.serving.web.api import SnapshotView
from service.serving.web.pages import page_app
from service.serving.web.server import WebServer

# `.ci/accessibility.sh` runs it, with axe-core.
collect_ignore = [] if "AXE" in os.environ else ["test_axe.py"]

ASSESSMENTS = (
    "{weakest: {task: identification, grouping: region, budget: {labels: 300}, max_in_flight: 50}, "
    "classes: {task: estimation, grouping: class, budget: {labels: 300}}}"
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The machine's own browser; none is ever fetched."""
    path = program("chromium", "chromium-browser", package="chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, bootstrap_servers: str, redis_server: EmbeddedRedis
) -> Iterator[Site]:
    """One deployment for all tests of a module."""
    folder = tmp_path_factory.mktemp("page")
    with ExitStack() as stack:
        deployment = stack.enter_context(
            closing(
                Deployment(
                    folder,
                    broker=bootstrap_servers,
                    redis_url=redis_server.url,
                    assessments=ASSESSMENTS,
                    # No accuracy changes here: a chance streak of right labels must not hide the weak group.
                    model="forgetting: {after_change: false}",
                )
            )
        )
        deployment.send_predictions(range(1500))
        for number in range(100_000, 100_150):
            item = prediction(number) | {"attributes": {"region": HOSTILE}}
            deployment.send("predictions", json.dumps(item).encode(), item["item_id"])
        deployment.producer.flush()
        process = stack.enter_context(deployment.process("run"))
        site = Site(deployment, process, Labeller(deployment))
        site.labeller.truth = truth_of_a_weak_south
        wait_for(site.is_south_found, seconds=60, what="a problem")
        yield site


@pytest.fixture
def complaints() -> list[str]:
    """What the browser has complained of, and requests to other hosts."""
    return []


@pytest.fixture(scope="session")
def desk(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser with a large window; what it has loaded once it remembers, as people's browsers do."""
    with closing(chromium.new_context(reduced_motion="reduce")) as context:
        yield context


@pytest.fixture
def visit(chromium: Browser, desk: BrowserContext, site: Site, complaints: list[str]) -> Iterator[Open]:
    """Opens a place of the page in a window, and waits until its groups are shown."""
    with ExitStack() as stack:

        def visit(place: str = "/", *, url: str = site.url, **options: Any) -> Page:
            context = stack.enter_context(closing(chromium.new_context(**options))) if options else desk
            page = stack.enter_context(closing(attentive(context, complaints)))
            page.on(
                "request",
                lambda sent: None if sent.url.startswith(url + "/") else complaints.append(sent.url),
            )
            page.goto(url + place)
            page.locator("tr.row").first.wait_for()
            return page

        yield visit


@pytest.fixture
def shown(request: pytest.FixtureRequest, chromium: Browser, desk: BrowserContext) -> Iterator[Shown]:
    """Shows a snapshot of model `m`; the page must not complain."""
    complaints: list[str] = []
    pages: list[Page] = []
    with ExitStack() as stack:

        def show(
            taken: ModelSnapshot | None,
            place: str = "/",
            *,
            now: float = NOW + 1,
            pipeline: PipelineState | None = None,
            **options: Any,
        ) -> Page:
            board = {} if taken is None else {"m": taken}
            view = SnapshotView(["m"], board, 1.0, lambda: now, pipeline=lambda: pipeline)
            server = WebServer(page_app(view), name="page", host="127.0.0.1", port=0)
            stack.callback(server.stop)
            context = stack.enter_context(closing(chromium.new_context(**options))) if options else desk
            page = stack.enter_context(closing(attentive(context, complaints)))
            page.goto(f"http://127.0.0.1:{server.port}{place}")
            pages.append(page)
            return page

        yield show
        if (folder := request.config.getoption("--pictures")) is not None:
            for number, page in enumerate(pages):
                page.screenshot(path=folder / f"{request.node.name}-{number}.png")
    assert complaints == []
