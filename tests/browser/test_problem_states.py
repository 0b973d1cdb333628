"""What the page says at its top, in every state: what is wrong, that all is well, or that nobody can know."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from page_site import Shown
from playwright.sync_api import Page, expect
from snapshots import NOW, drifting, mail, snapshot

from service.monitoring.snapshot import ModelSnapshot

HIGH = {"min_accuracy": 0.5}
PHONE: Any = {"viewport": {"width": 360, "height": 740}}
# Labels come class by class, so score bins seem to change; nothing is to be forgotten for that.
UNFORGOTTEN: Any = {"forgetting": {"after_change": False}}
WATCHED: Any = {"alerts": {"min_accuracy": 0.8, "max_ece": 0.4}, "reference": {"labels": 20}, **UNFORGOTTEN}
PICTURES = os.environ.get("CREDENCE_PICTURES")
"""A folder to save pictures of the states in, for people to look at."""


def picture(page: Page, name: str) -> None:
    """Save the page as people see it, where that is wanted."""
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png")


def suspected() -> ModelSnapshot:
    return snapshot(40, alerts={"min_accuracy": 0.8}, reference={"labels": 20}, **UNFORGOTTEN)


def with_trends(taken: ModelSnapshot, **fields: Any) -> ModelSnapshot:
    return replace(taken, trends=replace(taken.trends, **fields))


STATES = {
    "suspected": (suspected, "warning", "Accuracy below target: class = dog"),
    "confirmed": (lambda: snapshot(200, **WATCHED), "critical", "Accuracy below target: class = dog"),
    "changed": (
        lambda: snapshot(200, changed="owl", **WATCHED),
        "critical",
        "Less accurate than before: class = owl",
    ),
    "miscalibrated": (
        lambda: snapshot(alerts={"max_ece": 0.25}, reference={"labels": 20}, **UNFORGOTTEN),
        "critical",
        "Miscalibrated: score_bin = [0,0.5)",
    ),
    "drift": (drifting, "warning", "Drift: class = dog"),
    "unanswered": (
        lambda: with_trends(snapshot(8, alerts=HIGH), unanswered={"worst": 12}),
        "warning",
        "Label requests expire unanswered: worst",
    ),
}
"""States in which something is wrong: what makes the snapshot, the worst severity, and part of a title."""


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("state", STATES)
def test_a_state_is_told_by_its_worst_problem_and_never_as_well(
    shown: Shown, state: str, size: dict[str, Any]
) -> None:
    taken, severity, title = STATES[state]
    page = shown(taken(), **size)
    expect(page.locator("#problems h2")).to_contain_text(re.compile(rf"^\d+ problems?: \d+ {severity}"))
    expect(page.locator(f".problem.{severity}", has_text=title)).to_be_visible()
    expect(page.locator(".panel.ok, .badge.meets")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, f"{state}-{'phone' if size else 'light'}")


@pytest.mark.parametrize(
    ("state", "taken", "title"),
    [
        ("no-traffic", lambda: snapshot(0, traffic=False, alerts=HIGH), "No traffic yet"),
        (
            "quiet",
            lambda: with_trends(snapshot(8, alerts=HIGH), traffic_at=NOW - 2 * 86_400),
            "No recent traffic",
        ),
        ("no-labels", lambda: snapshot(0, alerts=HIGH), "No labels yet"),
        ("no-threshold", lambda: snapshot(8), "No threshold is configured"),
        ("learning", lambda: mail(None, alerts=HIGH | {"max_ece": 0.9}), "No estimate of performance yet"),
    ],
)
def test_what_nobody_can_know_is_not_told_as_well(
    shown: Shown, state: str, taken: Callable[[], ModelSnapshot], title: str
) -> None:
    page = shown(taken())
    expect(page.locator("#problems h2")).to_have_text(title)
    expect(page.locator(".panel.ok, .badge.meets")).to_have_count(0)
    expect(page.locator("#models .badge")).to_have_text("…")
    picture(page, state)


def test_a_note_is_at_hand_and_the_model_is_well(shown: Shown) -> None:
    page = shown(snapshot(100, alerts={"min_accuracy": 0.3}, reference={"labels": 20}, **UNFORGOTTEN))
    expect(page.get_by_role("heading", name="No problems")).to_be_visible()
    expect(page.locator("#models .badge")).to_have_text("✓")
    page.get_by_text("2 notes").click()
    note = page.locator(".problem", has_text="Miscalibrated by some amount: class = ")
    expect(note).to_contain_text("set alerts.max_ece")
    expect(note.locator(".severity")).to_have_text("note")
    picture(page, "note")


@pytest.mark.parametrize(("age", "title"), [(60.0, "Estimates are late"), (400.0, "1 problem: 1 critical")])
def test_old_estimates_are_not_told_as_well(shown: Shown, age: float, title: str) -> None:
    page = shown(snapshot(8, alerts=HIGH), now=NOW + age)
    expect(page.locator("#problems h2")).to_have_text(title)
    expect(page.locator(".panel.ok, .badge.meets")).to_have_count(0)


def test_a_page_without_an_answer_does_not_say_that_all_is_well(shown: Shown) -> None:
    page = shown(snapshot(8, alerts=HIGH))
    expect(page.get_by_role("heading", name="No problems")).to_be_visible()
    picture(page, "healthy")
    page.route("**/api/v1/**", lambda route: route.fulfill(body="a proxy, not Credence"))
    expect(page.locator("#problems h2")).to_have_text("State unknown")
    expect(page.locator(".panel.ok, .badge.meets")).to_have_count(0)
