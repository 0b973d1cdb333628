"""The labelling page, and the report of a trial, as axe-core judges them: `.ci/accessibility.sh` fetches it,
and names its file as AXE."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from label_site import Sit, item, picture_url, press
from looking import NAMELESS, SKIPPED_HEADINGS
from playwright.sync_api import Browser, Page
from trial_results import group, result

from service.app.trial.html_report import html_report

SEVERE = {"serious", "critical"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
SCREENS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE}


def found(page: Page) -> list[str]:
    """What axe-core finds that is serious or critical, and where."""
    page.evaluate(Path(os.environ["AXE"]).read_text(encoding="utf-8"))
    results = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert "color-contrast" in {one["id"] for one in results["passes"]}, "axe has looked at something"
    return [
        f"{one['id']} ({one['impact']}): {node['html']}"
        for one in results["violations"]
        if one["impact"] in SEVERE
        for node in one["nodes"]
    ]


def faults(page: Page) -> list[str]:
    """All that is wrong with what is shown."""
    return [*found(page), *page.evaluate(NAMELESS), *page.evaluate(SKIPPED_HEADINGS)]


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_serious_is_found_while_text_is_labelled(sit: Sit, screen: str) -> None:
    desk = sit()
    desk.ask(4, lambda number: {"payload": {"title": f"Parcel {number}", "lines": [{"sku": "A-1", "n": 2}]}})
    page = desk.open(**SCREENS[screen])
    assert faults(page) == [], "the login"
    page.context.close()
    page = desk.sit("desk-7", **SCREENS[screen])
    item(page)
    assert faults(page) == []
    press(page, "1")
    page.keyboard.press("Backspace")
    assert faults(page) == [], "what is to be undone"
    page.keyboard.press("?")
    assert faults(page) == [], "the keys"


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_serious_is_found_in_a_grid_and_among_many_classes(sit: Sit, screen: str) -> None:
    many = [f"class {number}" for number in range(1_000)]
    desk = sit(model={"classes": many})
    desk.ask(8, lambda number: {"payload": picture_url(number * 30), "predicted_class": many[0]})
    page = desk.sit(**SCREENS[screen])
    item(page)
    assert faults(page) == []
    page.get_by_role("button", name="Grid").click()
    page.locator(".cell").nth(7).wait_for()
    page.get_by_role("combobox").fill("77")
    assert faults(page) == []
    page.keyboard.press("Enter")
    assert faults(page) == [], "a cell that was labelled"


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_serious_is_found_when_nothing_waits(sit: Sit, screen: str) -> None:
    page = sit().sit(**SCREENS[screen])
    page.locator(".nothing").wait_for()
    assert faults(page) == []


@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_serious_is_found_in_the_report_of_a_trial(
    chromium: Browser, tmp_path: Path, screen: str
) -> None:
    tried = replace(
        result(group("north", 0.9, 0.99), group("south", 0.7, None)), reports=["Accuracy below target."]
    )
    path = tmp_path / "trial.html"
    path.write_text(html_report(tried), encoding="utf-8")
    with chromium.new_context(**SCREENS[screen]) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        assert faults(page) == []
