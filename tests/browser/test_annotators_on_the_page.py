"""People and vendors who label, on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from labelled_models import annotated, labelling
from page_site import HOSTILE, Shown
from playwright.sync_api import expect
from snapshots import snapshot

from service.monitoring.snapshot import ModelSnapshot


def named(name: str, **alerts: Any) -> ModelSnapshot:
    """A snapshot of a model of whose people one has this name."""
    people = (("", name), ("", "ana"), ("", "ben"))
    return replace(snapshot(8), labelling=labelling(people, guessing="nobody", **alerts))


def test_vendors_are_listed_the_least_reliable_first(shown: Shown) -> None:
    rows = shown(annotated()).get_by_role("table", name="Vendors").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("beta")
    expect(rows.nth(0)).to_contain_text("over 99.9%")


def test_the_share_of_wrong_gold_labels_is_shown_where_there_are_some(shown: Shown) -> None:
    expect(shown(annotated()).locator("#annotators thead").first).to_contain_text("Wrong about gold")
    page = shown(replace(snapshot(8), labelling=labelling()))
    expect(page.locator("#annotators thead").first).not_to_contain_text("gold")


def test_a_vendor_below_the_threshold_is_a_problem(shown: Shown) -> None:
    page = shown(annotated())
    expect(page.locator("#problems")).to_contain_text("Labels less reliable than required: beta")


def test_the_page_says_how_often_people_agree(shown: Shown) -> None:
    expect(shown(annotated()).locator("#annotators")).to_contain_text("Two people agree on")


def test_at_most_ten_people_are_listed(shown: Shown) -> None:
    people = tuple(("acme", f"p{number}") for number in range(25))
    page = shown(replace(snapshot(8), labelling=labelling(people)))
    expect(page.get_by_role("table", name="People").locator("tbody tr")).to_have_count(10)
    expect(page.locator("#annotators")).to_contain_text("15 more people are not shown.")


def test_without_a_threshold_nobody_is_compared_with_one(shown: Shown) -> None:
    page = shown(replace(snapshot(8), labelling=labelling(min_reliability=None)))
    expect(page.locator("#annotators thead").first).not_to_contain_text("Below threshold")


def test_a_model_whose_labels_are_the_truth_has_no_such_section(shown: Shown) -> None:
    page = shown(snapshot(8))
    expect(page.locator("#assessments")).to_be_visible()
    expect(page.locator("#annotators")).to_be_hidden()


@pytest.mark.parametrize("name", [HOSTILE, "<script>document.title='taken over'</script>"])
def test_markup_in_a_name_is_text(shown: Shown, name: str) -> None:
    page = shown(named(name))
    expect(page.get_by_role("table", name="People")).to_contain_text(name)
    expect(page).not_to_have_title("taken over")


def test_marks_of_direction_in_a_name_do_not_reach_beyond_it(shown: Shown) -> None:
    page = shown(named("\u202egnol"))
    cell = page.get_by_role("row").filter(has_text="gnol").locator("bdi")
    expect(cell).to_have_count(1)


def test_the_longest_name_does_not_make_a_phone_scroll_sideways(shown: Shown) -> None:
    page = shown(named("x" * 128), viewport={"width": 390, "height": 844})
    expect(page.locator("#annotators")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
