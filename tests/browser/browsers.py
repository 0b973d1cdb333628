"""How long tests wait for a browser, and what it complains of."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

PATIENCE_MS = 60_000
"""With a browser on a busy machine, for what is done as for what is looked for."""

expect.set_options(timeout=PATIENCE_MS)


def attentive(context: BrowserContext, complaints: list[str]) -> Page:
    """A window that writes down what the browser complains of."""
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on(
        "console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page
