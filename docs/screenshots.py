"""Pictures the status page for the documentation: `python -m docs.screenshots [--url http://127.0.0.1:8400]`.

Without a URL it plays the demo, and takes its pictures once the weak camera is found; then it puts a binary
classifier behind Credence, and pictures its performance; then it has digits labelled in the browser.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

from docs.digit_desk import digit_desk, shown_digit
from docs.spotter import spotter

FOLDER = Path(__file__).parent / "images"
DEMO_SECONDS = 120
FINDING_SECONDS = 150
SETTLING_SECONDS = 20
COLOURS = 256
LABELLED = 4

DESKTOP: dict[str, Any] = {"viewport": {"width": 1360, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 1000}, "device_scale_factor": 2}
GAP = 24


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="of a running Credence; plays the demo if absent")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.url:
        picture(options.url.rstrip("/"), options.folder)
        return
    with demo() as url:
        # A problem is surer, and its history longer, a while after it is first made.
        picture(url, options.folder, settling_seconds=SETTLING_SECONDS)
    with spotter() as url:
        picture_performance(url, options.folder)
    with digit_desk() as (url, token):
        picture_labelling(url, token, options.folder)


@contextmanager
def demo() -> Iterator[str]:
    """The demo while it runs; its address."""
    command = [sys.executable, "-m", "service.app.cli", "demo", "--seconds", str(DEMO_SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = process.stdout or iter(())
        url = next(
            (found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+", line))), None
        )
        if url is None:
            raise SystemExit("the demo did not tell its address")
        try:
            yield url
        finally:
            process.terminate()
            process.communicate()


def picture(url: str, folder: Path, *, settling_seconds: float = 0.0) -> None:
    """Take the pictures of a running Credence.

    Args:
        url: where it serves.
        folder: where they go.
        settling_seconds: to wait after something is found.
    """
    with chromium() as browser:
        with opened(browser, url, **DESKTOP) as page:
            page.wait_for_timeout(1000 * settling_seconds)
            open_weakest(page)
            save(page, folder / "status-light.png", "main", "#groups")
        with opened(browser, url, color_scheme="dark", **DESKTOP) as page:
            page.get_by_role("navigation", name="Groupings").get_by_role("link", name="class").click()
            page.locator("tr.row").nth(9).wait_for()
            save(page, folder / "status-dark.png", "main", "#confusion")
        with opened(browser, url, **PHONE) as page:
            save(page, folder / "status-phone.png", "main", "#groups")


def picture_performance(url: str, folder: Path) -> None:
    """Take the pictures of the performance of a binary classifier, at its best threshold."""
    with chromium() as browser:
        for scheme in ("light", "dark"):
            with opened(browser, url, color_scheme=scheme, **DESKTOP) as page:
                page.get_by_role("button", name="Best").click()
                save(page, folder / f"performance-{scheme}.png", "#performance", "#performance")


def picture_labelling(url: str, token: str, folder: Path) -> None:
    """Take the pictures of the labelling page: a grid of images, one image in dark colours, and a phone."""
    with chromium() as browser:
        with logged_in(browser, url, token, **DESKTOP) as page:
            page.get_by_role("button", name="Grid").click()
            page.locator(".cell").nth(11).wait_for()
            for cell in page.locator(".cell").all()[:LABELLED]:
                item = str(cell.get_attribute("aria-label")).removeprefix("Item ").partition(",")[0]
                page.keyboard.press(shown_digit(item))
            save(page, folder / "labelling-light.png", "main", "#work")
        with logged_in(browser, url, token, color_scheme="dark", **DESKTOP) as page:
            page.keyboard.press("3")
            page.locator(".last").wait_for()
            save(page, folder / "labelling-dark.png", "main", "#work")
        with logged_in(browser, url, token, has_touch=True, is_mobile=True, **PHONE) as page:
            save(page, folder / "labelling-phone.png", "main", "#work")


@contextmanager
def logged_in(browser: Browser, url: str, token: str, **options: Any) -> Iterator[Page]:
    """The labelling page of somebody who has an image to label."""
    with closing(browser.new_context(reduced_motion="reduce", **options)) as context:
        page = context.new_page()
        page.goto(f"{url}/label/")
        page.get_by_label("Token").fill(token)
        page.get_by_label("Your name").fill("desk-7")
        page.get_by_role("button", name="Log in").click()
        page.locator("#item-title").wait_for(timeout=1000 * FINDING_SECONDS)
        page.wait_for_function("[...document.images].every((image) => image.complete)")
        yield page


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's own browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise SystemExit("there is no chromium on the PATH")
    with (
        sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])) as browser,
    ):
        yield browser


@contextmanager
def opened(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """The page of a model that has a problem."""
    with closing(browser.new_context(reduced_motion="reduce", **options)) as context:
        page = context.new_page()
        page.goto(url)
        found = page.locator(".problem", has_text=re.compile("below target|Target missed"))
        found.first.wait_for(timeout=1000 * FINDING_SECONDS)
        yield page


def open_weakest(page: Page) -> None:
    """Open the detail of the group at the top of the table, as a reader would."""
    page.locator("tr.row .name").first.click()
    page.locator("#detail figure").nth(1).wait_for()
    page.locator("tr.row a").first.blur()


def save(page: Page, path: Path, first: str, last: str) -> None:
    """Save the stretch of the page from the top of one part to the bottom of another."""
    page.evaluate("scrollTo(0, 0)")
    top = 0.0 if first == "main" else edges(page, first)["y"] - GAP
    end = edges(page, last)
    width = (page.viewport_size or DESKTOP["viewport"])["width"]
    clip: FloatRect = {"x": 0, "y": top, "width": width, "height": end["y"] + end["height"] + GAP - top}
    taken = page.screenshot(full_page=True, clip=clip)
    # A palette makes the file a third as large, and nothing that one could see is lost: rare colours stay.
    pixels = Image.open(BytesIO(taken)).convert("RGB")
    palette = Image.Quantize.MAXCOVERAGE
    pixels.quantize(COLOURS, method=palette, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} KiB")


def edges(page: Page, part: str) -> FloatRect:
    """Where a part of the page is."""
    box = page.locator(part).bounding_box()
    if box is None:
        raise SystemExit(f"{part} is not shown")
    return box


if __name__ == "__main__":
    main()
