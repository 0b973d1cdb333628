"""A real Chromium; where it is missing, tests skip locally and fail in CI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from missing_programs import program
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

PATIENCE_MS = 10_000
"""With a browser on a busy machine, for what is done as for what is looked for."""

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The machine's own browser; none is ever fetched."""
    path = program("chromium", "chromium-browser", package="chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def attentive(context: BrowserContext, complaints: list[str]) -> Page:
    """A window that writes down what the browser complains of."""
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on(
        "console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page
