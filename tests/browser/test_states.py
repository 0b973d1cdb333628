"""The page in states that a deployment of tests is seldom in, from snapshots made for them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from page_site import Shown
from playwright.sync_api import expect
from rated_snapshots import rated
from snapshots import BUDGET, challenged, drifting, mail, performance, pooled, snapshot, waiting

MANY = [f"c{i:03d}" for i in range(148)] + ["cat", "dog"]
STRICT = {"min_accuracy": 0.8, "max_ece": 0.4}


def test_before_the_first_round_the_page_says_that_there_are_no_estimates(shown: Shown) -> None:
    expect(shown(None).locator("#freshness")).to_have_text("No estimates yet")


def test_without_traffic_the_page_says_so(shown: Shown) -> None:
    page = shown(snapshot(0, traffic=False, alerts=STRICT))
    expect(page.get_by_role("heading", name="No traffic yet")).to_be_visible()


def test_without_a_threshold_nothing_is_called_well(shown: Shown) -> None:
    page = shown(snapshot(8))
    expect(page.get_by_role("heading", name="No threshold is configured")).to_be_visible()
    expect(page.locator(".badge.meets")).to_have_count(0)
    expect(page.locator("table.groups")).not_to_contain_text("Verdict")


def test_without_problems_the_page_says_so_and_shows_what_is_undecided(shown: Shown) -> None:
    page = shown(snapshot(8, alerts={"min_accuracy": 0.5}))
    expect(page.get_by_role("heading", name="No problems")).to_be_visible()
    expect(page.locator(".panel")).to_contain_text("Undecided, more labels needed: 3 of 3 by class")


def test_a_group_that_changed_says_what_labels_from_before_count(shown: Shown) -> None:
    page = shown(snapshot(changed="cat"), "/?grouping=class&group=cat")
    said = re.compile(
        r"Its accuracy has changed, probably with predictions of .* ago: "
        r"the \d+\slabels from before the change point are down-weighted"
    )
    expect(page.locator("#detail .next")).to_contain_text(said)


# Labels come class by class, so score bins seem to change; nothing is to be forgotten for that.
UNFORGOTTEN: Any = {"forgetting": {"after_change": False}}
WATCHED: Any = {"alerts": STRICT, "reference": {"labels": 20}, **UNFORGOTTEN}


def test_what_evidence_confirms_has_a_badge_and_is_reported_with_its_strength(shown: Shown) -> None:
    page = shown(snapshot(200, **WATCHED), "/?grouping=class&group=dog")
    expect(page.locator("tr.row", has_text="dog").locator(".confirmed")).to_have_text("confirmed")
    expect(page.locator(".problem.critical", has_text="dog").first).to_contain_text("Confirmed (e-value 10^")
    expect(page.locator("#detail")).to_contain_text(
        "Evidence confirms that its accuracy is below 80%: e-value 10^"
    )
    expect(page.locator("tr.row", has_text="dog").locator(".forest .always")).to_have_count(1)


def test_a_decline_is_reported_with_its_time(shown: Shown) -> None:
    taken = snapshot(200, changed="owl", **WATCHED)
    evidence = taken.groupings["class"].evidence
    assert evidence is not None
    declined = evidence.groups[next(iter(evidence.changes))]
    page = shown(taken, f"/?grouping=class&group={declined}")
    expect(page.locator("#detail")).to_contain_text("It has been less accurate since about")


def test_costs_are_shown_and_sorted_by(shown: Shown) -> None:
    page = shown(snapshot(alerts=STRICT), "/?grouping=class")
    page.get_by_role("button", name="Cost").click()
    expect(page.locator("tr.row .name").first).to_have_text("dog")
    page.get_by_role("button", name="Cost").click()
    expect(page.locator("tr.row .name").last).to_have_text("dog")


def test_a_comparison_is_reported_in_three_probabilities(shown: Shown) -> None:
    comparison = shown(snapshot(alerts=STRICT)).locator(".comparison")
    expect(comparison.get_by_role("listitem")).to_have_count(3)
    expect(comparison).to_contain_text("dog is less accurate")


def test_the_grouping_of_an_assessment_is_called_what_its_configuration_calls_it(shown: Shown) -> None:
    asked = {"my_group": {"task": "identification", "grouping": "my_group", "budget": BUDGET}}
    page = shown(snapshot(groupings={"my_group": {"by": "predicted_class"}}, assessments=asked))
    expect(page.locator("#assessments .card .eyebrow")).to_have_text(
        "my_group · identification of accuracy · by my_group"
    )


def test_a_grouping_of_credence_itself_is_reported_in_words(shown: Shown) -> None:
    expect(shown(mail(performance())).locator("#assessments .card .eyebrow")).to_contain_text(
        "· by positive score"
    )


def test_the_members_of_an_ensemble_are_reported_also_on_a_phone(shown: Shown) -> None:
    page = shown(pooled(), viewport={"width": 360, "height": 740})
    members = page.get_by_role("table", name="The ensemble and its members by their precision")
    expect(members.get_by_role("rowheader")).to_have_text(["ensemble", "first", "second"])
    expect(page.locator("#assessments .card")).to_contain_text("votes · precision of an ensemble")
    expect(page.locator("#assessments .card")).to_contain_text("· planned")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert members.evaluate("(table) => table.scrollWidth <= table.parentElement.clientWidth")


def test_a_group_that_may_miss_much_of_its_traffic_is_marked(shown: Shown) -> None:
    taken = snapshot()
    classes = replace(taken.groupings["class"], missed=np.array([0.004, 0.12, 0.0]))
    page = shown(replace(taken, groupings={**taken.groupings, "class": classes}), "/?grouping=class")
    expect(page.locator(".partial")).to_have_count(1)
    expect(page.locator("tr", has=page.locator(".partial"))).to_contain_text("dog")
    expect(page.locator(".partial")).to_have_attribute("title", re.compile(r"Up to 12"))


def test_a_group_that_has_drifted_is_named_and_its_scores_are_drawn_then_and_now(shown: Shown) -> None:
    page = shown(drifting(), "/?grouping=class&group=dog")
    expect(page.locator(".drifted")).to_have_count(1)
    expect(page.get_by_text("Drifted from the reference: class dog")).to_be_visible()
    expect(page.locator("tr", has=page.locator(".drifted")).first).to_contain_text("dog")
    drift = page.locator("#detail figure", has_text="Drift")
    expect(drift).to_contain_text("has drifted: its scores differ")
    expect(drift.locator("rect.recent")).to_have_count(2)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (0, "It has no labels of its own"),
        (2, "of the estimate comes from its own labels, the rest from scores and other groups"),
        (60, "The estimate comes from its own labels"),
    ],
)
def test_a_group_shows_how_far_it_stands_on_its_own_labels(shown: Shown, labels: int, words: str) -> None:
    page = shown(snapshot(labels), "/?grouping=class&group=dog")
    expect(page.locator("#detail .estimate-source")).to_contain_text(words)


def test_what_waits_for_unrequested_labels_is_said_beside_the_groups(shown: Shown) -> None:
    page = shown(replace(snapshot(), waiting=waiting(items=7)))
    expect(page.locator("#groups")).to_contain_text("7 predictions wait for unrequested labels")


def test_without_a_reference_no_drift_is_drawn(shown: Shown) -> None:
    page = shown(snapshot(), "/?grouping=class&group=dog")
    expect(page.locator("#detail")).to_contain_text("Reliability")
    expect(page.locator("#detail figure", has_text="Drift")).to_have_count(0)


def test_a_challenger_is_compared_in_every_group_also_on_a_phone(shown: Shown) -> None:
    page = shown(challenged(), viewport={"width": 360, "height": 740})
    table = page.get_by_role("table", name="Accuracy of the challenger minus that of the model")
    expect(table.get_by_role("rowheader")).to_have_count(4)
    expect(table.get_by_role("rowheader").first).to_have_text("all traffic")
    expect(page.locator("#assessments .card .result")).to_contain_text("v2 is better")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert table.evaluate("(table) => table.scrollWidth <= table.parentElement.clientWidth")


@pytest.mark.parametrize("width", [360, 1_100])
def test_error_rates_of_every_group_are_shown_also_on_a_phone(shown: Shown, width: int) -> None:
    page = shown(rated(), viewport={"width": width, "height": 740})
    table = page.get_by_role("table", name="Error rates by group, for cat against the rest")
    expect(table.get_by_role("rowheader")).to_contain_text(["north", "south", "Difference", "Ratio"])
    expect(table.get_by_role("row", name="north").locator("strong")).to_have_text("at most 30%: confirmed")
    expect(table.get_by_role("row", name="Difference").locator("strong")).to_have_text("at most 5%")
    expect(table.get_by_role("row", name="Ratio").locator("strong")).to_have_text("at least 95%")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert table.evaluate("(table) => table.scrollWidth <= table.parentElement.clientWidth")


def test_more_groups_are_shown_when_asked_for(shown: Shown) -> None:
    page = shown(snapshot(1, classes=MANY, assessments={}), "/?grouping=class")
    expect(page.locator("tr.row")).to_have_count(100)
    page.get_by_role("button", name="Show more: 100 of 150").click()
    expect(page.locator("tr.row")).to_have_count(150)


def test_a_link_opens_a_group_that_is_far_down_the_table(shown: Shown) -> None:
    page = shown(snapshot(1, classes=MANY, assessments={}), "/?grouping=class&sort=group&group=dog")
    expect(page.locator("tr.expanded .name")).to_have_text("dog")
    expect(page.locator("#detail")).to_be_visible()


def test_a_request_does_not_tell_a_labeller_what_the_model_said(shown: Shown) -> None:
    asked = {"whole": {"metric": "overall_accuracy", "budget": BUDGET}}
    requests = shown(snapshot(assessments=asked)).locator("details", has_text="Open requests")
    expect(requests).to_contain_text("hidden")
    expect(requests).not_to_contain_text("Predicted")


def test_a_budget_that_never_renews_shows_no_time(shown: Shown) -> None:
    page = shown(snapshot(12, alerts={"min_accuracy": 0.9}), "/?grouping=class&group=owl")
    expect(page.locator("#detail")).to_contain_text("No budget renews.")


def test_where_thresholds_differ_every_group_has_its_own_target(shown: Shown) -> None:
    groups = {"dog": {"min_accuracy": 0.65}, "owl": {"min_accuracy": None}}
    alerts = {"min_accuracy": 0.8, "groupings": {"class": {"groups": groups}}}
    page = shown(snapshot(100, alerts=alerts), "/?model=m&grouping=class&group=dog")
    table = page.locator("table.groups")
    expect(table.locator("thead")).to_contain_text("Target")
    expect(table.locator("thead")).to_contain_text("P(below target)")
    for group, target in {"cat": "80%", "dog": "65%", "owl": "none"}.items():
        expect(table.locator("tr.row", has_text=group)).to_contain_text(target)
    expect(page.locator(".legend").first).to_contain_text("target of the group: 65% to 80%")
    expect(page.locator("#detail")).to_contain_text("accuracy is below 65%")
