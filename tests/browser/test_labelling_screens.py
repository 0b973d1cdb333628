"""The labelling page on several screens, for people without a mouse, and for screen readers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from label_site import Desk, Sit, await_sent, item, picture_url, press
from looking import FAINT, NAMELESS, SKIPPED_HEADINGS
from playwright.sync_api import Page, expect

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
SCREENS: dict[str, dict[str, Any]] = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": PHONE}
MANY = [f"class {number}" for number in range(1_000)]
LEAST_PIXELS = 44

SMALL = f"""() => [...document.querySelectorAll("button, select, input, [role=option]")]
  .filter((one) => one.offsetParent && one.getBoundingClientRect().height < {LEAST_PIXELS})
  .map((one) => `${{one.outerHTML}}: ${{one.getBoundingClientRect().height}}`)"""
"""Things to tap that are not high enough for a finger."""

WIDE = "() => document.documentElement.scrollWidth > innerWidth"


def faults(page: Page) -> list[str]:
    seen = page.evaluate(FAINT)
    assert seen["looked"]
    return [*seen["faint"], *page.evaluate(NAMELESS), *page.evaluate(SKIPPED_HEADINGS)]


def with_pictures(sit: Sit) -> Desk:
    desk = sit(model={"classes": MANY})
    desk.ask(12, lambda number: {"payload": picture_url(number * 20), "predicted_class": MANY[0]})
    return desk


@pytest.mark.parametrize("screen", SCREENS)
def test_everything_is_named_and_can_be_read(sit: Sit, screen: str) -> None:
    desk = with_pictures(sit)
    assert faults(desk.open(**SCREENS[screen])) == []
    page = desk.sit("desk-7", **SCREENS[screen])
    item(page)
    assert faults(page) == []
    page.get_by_role("button", name="Grid").click()
    page.locator(".cell").first.wait_for()
    assert faults(page) == []
    assert desk.complaints == []


def test_a_phone_has_large_targets_and_nothing_wider_than_itself(sit: Sit) -> None:
    desk = with_pictures(sit)
    login = desk.open(**PHONE)
    assert login.evaluate(SMALL) == []
    page = desk.sit("desk-7", **PHONE)
    item(page)
    assert (page.evaluate(SMALL), page.evaluate(WIDE)) == ([], False)
    page.get_by_role("option", name="class 1", exact=True).tap()
    await_sent(page, labelled=1)
    page.get_by_role("button", name="Grid").tap()
    page.locator(".cell").first.wait_for()
    assert (page.evaluate(SMALL), page.evaluate(WIDE)) == ([], False)
    page.get_by_role("button", name="Undo").tap()
    assert page.evaluate(SMALL) == []


def test_a_long_word_does_not_widen_a_phone(sit: Sit) -> None:
    desk = sit(model={"classes": ["cat", "dog", "o" * 200]})
    desk.ask(1, lambda _: {"item_id": f"item-{'x' * 200}", "payload": {"k" * 300: "w" * 3_000}})
    page = desk.sit("n" * 128, **PHONE)
    item(page)
    assert page.evaluate(WIDE) is False


def tabbed(page: Page, count: int) -> list[str]:
    """What has the focus after each press of the tab key."""
    names = []
    for _ in range(count):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.innerText"))
    return [re.sub(r"\s+", " ", name) for name in names]


def test_everything_is_reached_without_a_mouse(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.open()
    assert tabbed(page, 2) == ["Skip to the item", "Credence"]
    page.keyboard.press("Tab")
    page.keyboard.type("token-of-acme")
    page.keyboard.press("Tab")
    page.keyboard.type("desk-7")
    page.keyboard.press("Enter")
    item(page)
    skip, brand, *names = tabbed(page, 9)
    assert (skip, brand) == ("Skip to the item", "Credence")
    assert names[:-1] == ["Keys", "Log out", "Payload", "1 cat", "2 dog", "3 owl"]
    assert names[-1].endswith("Skip")


def test_what_was_done_and_what_comes_next_is_announced(sit: Sit) -> None:
    desk = sit()
    desk.ask(2)
    page = desk.sit()
    (first,) = press(page, "2")
    expect(page.get_by_role("status").first).to_have_text(
        re.compile(rf"^{first}: dog\. Next: item-\d+\. text \d+$")
    )


def test_the_interval_depends_on_the_number_of_labels_alone(sit: Sit) -> None:
    desk = sit()
    desk.ask(24)
    for keys in ("1" * 10, "1233212312"):
        page = desk.sit()
        press(page, *keys[:9])
        await_sent(page, labelled=9)
        expect(page.locator(".progress")).not_to_contain_text("points wide")
        press(page, keys[9])
        expect(page.locator(".progress")).to_contain_text("interval up to 62 points wide")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
