"""Writes what the dashboards would show as pages of plain HTML, and takes pictures of them with Chromium.

`python -m deploy.grafana.preview PROMETHEUS FOLDER --set model=digits` needs no Grafana. It shows what each
panel would say (title, unit, words, colours, columns), not how Grafana draws it.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from deploy.grafana.preview.drawing import page
from deploy.grafana.preview.source import Source
from deploy.grafana.queries import boards


def main() -> None:
    """Write a page and two pictures, of the first screen and of all, for each dashboard."""
    parser = argparse.ArgumentParser(prog="python -m deploy.grafana.preview", description=__doc__)
    parser.add_argument("prometheus", help="its address, such as http://127.0.0.1:9090")
    parser.add_argument("folder", type=Path, help="for the pages and pictures")
    parser.add_argument("--minutes", type=float, default=15, help="length of the time that is shown (15)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable")
    options = parser.parse_args()
    given = dict(one.split("=", 1) for one in options.set)
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, board in boards().items():
        now = time.time()
        source = Source(options.prometheus.rstrip("/"), board, now, 60 * options.minutes, given)
        paths.append(options.folder / f"{name}.html")
        paths[-1].write_text(page(board, source, now), encoding="utf-8")
    _take_pictures(paths)


def _take_pictures(paths: list[Path]) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no pictures: Chromium is not installed")  # noqa: T201 - a command reports what it does
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in paths:
            window = browser.new_page(viewport={"width": 1600, "height": 900})
            window.goto(path.resolve().as_uri())
            window.screenshot(path=path.with_suffix(".first.png"))
            window.screenshot(path=path.with_suffix(".png"), full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
