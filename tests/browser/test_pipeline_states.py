"""What the page says while the pipeline, or a budget, is in trouble."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_site import Shown
from pipelines import NOW, REFUSED, consumer, state
from playwright.sync_api import expect
from snapshots import snapshot
from test_problem_states import picture

from service.monitoring.snapshot import ModelSnapshot
from service.store.resets import RedisReset

HIGH = {"min_accuracy": 0.5}
TROUBLES = {
    "consumer-paused": (
        state(consumer("predictions", state="paused", state_since=NOW - 300, refused=(REFUSED,))),
        "too many messages are bad",
    ),
    "redis-reset": (
        state(reset=RedisReset(NOW - 60, "emptied", 1_280, 0, {"credence.labels": 1_300})),
        "It held 1,280 labels before, 0 after.",
    ),
    "no-leader": (state(leader=None), "no labels are requested"),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_a_pipeline_in_trouble_is_never_shown_as_well(shown: Shown, name: str) -> None:
    pipeline, words = TROUBLES[name]
    page = shown(snapshot(8, alerts=HIGH), pipeline=pipeline)
    expect(page.locator("#pipeline .problem").first).to_contain_text(words)
    expect(page.locator("#pipeline .problem a").first).to_contain_text("Runbook")
    expect(page.locator("#problems h2")).to_contain_text("The pipeline has")
    expect(page.locator(".panel.ok, .badge.meets")).to_have_count(0)
    picture(page, name)


def test_a_paused_consumer_is_the_reason_why_there_is_no_traffic(shown: Shown) -> None:
    pipeline, words = TROUBLES["consumer-paused"]
    page = shown(snapshot(0, traffic=False), pipeline=pipeline)
    expect(page.locator("#pipeline .problem").first).to_contain_text(words)
    expect(page.locator("#problems h2")).to_contain_text("The pipeline has")


def test_before_the_first_round_the_pipeline_is_shown_already(shown: Shown) -> None:
    page = shown(None, pipeline=TROUBLES["redis-reset"][0])
    expect(page.locator("#pipeline")).to_contain_text("It held 1,280 labels before")
    picture(page, "first-start")


def test_a_healthy_pipeline_is_a_line(shown: Shown) -> None:
    page = shown(snapshot(8, alerts=HIGH), pipeline=state())
    expect(page.locator("#pipeline")).to_contain_text("predictions: 1 consumer, 0 records behind")
    expect(page.locator("#pipeline .problem")).to_have_count(0)
    expect(page.get_by_role("heading", name="No problems")).to_be_visible()


def test_an_exhausted_budget_is_a_problem_and_a_state_of_its_assessment(shown: Shown) -> None:
    page = shown(exhausted(), pipeline=state())
    expect(page.locator("#problems")).to_contain_text("Budget exhausted")
    expect(page.locator("#assessments")).to_contain_text("Budget exhausted: all")
    picture(page, "budget-exhausted")


def exhausted() -> ModelSnapshot:
    taken = snapshot(8, alerts=HIGH)
    spent = replace(taken.assessments["worst"].budget, remaining=0, available=0, reserve=0, is_exhausted=True)
    assessments = {**taken.assessments, "worst": replace(taken.assessments["worst"], budget=spent)}
    return replace(taken, assessments=assessments)
