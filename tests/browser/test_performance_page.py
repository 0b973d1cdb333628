"""The performance of a binary classifier on the status page."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from looking import FAINT, NAMELESS, SKIPPED_HEADINGS
from page_site import Shown
from playwright.sync_api import Locator, Page, expect
from snapshots import mail, performance

from service.monitoring.snapshot import ModelSnapshot
from service.serving.documents.performance_documents import PerformanceState
from service.serving.documents.performances import performance_state

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}


@cache
def the_snapshot() -> ModelSnapshot:
    return mail(performance())


@cache
def the_state() -> PerformanceState:
    return performance_state(the_snapshot(), "curve")


@cache
def missed_snapshot() -> ModelSnapshot:
    return mail(
        dataclasses.replace(
            performance(),
            missed={"precision": 0.01, "recall": 0.9995},
            mixture=dataclasses.replace(performance().mixture, misfit_p_value=0.001, distance=0.1),
        ),
        alerts={"min_accuracy": 0.5},
    )


def slider(page: Page) -> Locator:
    """The threshold picker."""
    return page.get_by_role("slider", name="Threshold")


def row(page: Page, title: str) -> Locator:
    """One line of what happens at the threshold that is picked."""
    return page.locator(".at-threshold tr", has=page.get_by_text(title, exact=True))


def percent(ratio: float) -> str:
    # As the page rounds, halves up.
    return f"{math.floor(1_000 * ratio + 0.5) / 10:.1f}%"


def shown_measure(measure: str) -> str:
    """A measure at the classifier's threshold, as the page has it."""
    estimate = performance().measures[measure]
    lower, upper = 100 * float(estimate.lower), 100 * float(estimate.upper)
    return f"{percent(float(estimate.median))} [{lower:.1f},\N{NO-BREAK SPACE}{upper:.1f}]"


def test_a_sentence_shows_how_the_classifier_does(shown: Shown) -> None:
    section = shown(the_snapshot()).get_by_role("region", name="Performance")
    expect(section.get_by_role("heading", name="Finding spam")).to_be_visible()
    precision = shown_measure("precision").replace("\N{NO-BREAK SPACE}", " ")
    expect(section).to_contain_text(f"At its threshold of 0.5, precision on class spam is {precision}")
    missed = 100 * performance().missed["recall"]
    expect(section).to_contain_text(f"recall of at least 90% is missed with a probability of {missed:.1f}%")


def test_the_curve_has_a_band_and_the_threshold_in_use_on_it(shown: Shown) -> None:
    chart = shown(the_snapshot()).locator("#performance figure")
    expect(chart.get_by_role("img")).to_have_attribute(
        "aria-label",
        "Precision-recall curve of class spam; "
        f"at the threshold that is picked, precision {shown_measure('precision')}, "
        f"recall {shown_measure('recall')}",
    )
    for mark in ("band", "course", "used", "best", "picked"):
        expect(chart.locator(f".{mark}")).to_have_count(1)
    expect(chart.locator("line.target")).to_have_count(2)


def test_the_legend_calls_the_line_what_it_is(shown: Shown) -> None:
    expect(shown(the_snapshot()).locator("#performance .legend")).to_contain_text("median, with 95% band")


def test_the_slider_starts_at_the_threshold_in_use(shown: Shown) -> None:
    page = shown(the_snapshot())
    expect(slider(page)).to_have_value(str(the_state().operating))
    expect(page.locator(".picker output")).to_have_text("0.5")
    expect(row(page, "Precision")).to_contain_text(shown_measure("precision"))


def test_the_slider_moves_by_keys_and_shows_what_happens_there(shown: Shown) -> None:
    page = shown(the_snapshot())
    slider(page).focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    there = the_state().thresholds[the_state().operating + 5]
    assert there.recall is not None
    assert there.false_positive_rate is not None
    assert there.met is not None
    expect(row(page, "Recall")).to_contain_text(percent(there.recall.median))
    expect(row(page, "False positive rate")).to_contain_text(percent(there.false_positive_rate.median))
    expect(row(page, "P(all targets met)")).to_contain_text(percent(there.met))
    expect(row(page, "Misclassified")).to_contain_text(percent(there.cost.mean))
    expect(slider(page)).to_be_focused()
    expect(slider(page)).to_have_attribute(
        "aria-valuetext",
        f"{there.threshold:.3f}, precision "
        f"{percent(there.precision.median)}, recall {percent(there.recall.median)}",
    )  # type: ignore[union-attr]


def test_the_slider_moves_the_point_along_the_curve(shown: Shown) -> None:
    page = shown(the_snapshot())
    point = page.locator("figure .picked")
    before = float(point.get_attribute("cx") or "nan")
    slider(page).fill(str(the_state().operating + 20))
    expect(point).not_to_have_attribute("cx", str(before))
    assert float(point.get_attribute("cx") or "nan") < before, "a higher threshold finds fewer"


def test_what_is_picked_stays_when_the_page_is_drawn_again(shown: Shown) -> None:
    page = shown(the_snapshot())
    slider(page).fill("70")
    recall = row(page, "Recall").inner_text()
    page.set_viewport_size({"width": 900, "height": 800})
    page.wait_for_timeout(1_500)
    expect(slider(page)).to_have_value("70")
    expect(row(page, "Recall")).to_have_text(recall, use_inner_text=True)


def test_best_jumps_to_the_best_threshold_and_in_use_back(shown: Shown) -> None:
    page = shown(the_snapshot())
    slider(page).fill("80")
    page.get_by_role("button", name="Best").click()
    best = the_state().thresholds[the_state().best]
    assert best.met is not None
    expect(slider(page)).to_have_value(str(the_state().best))
    expect(page.locator(".picker output")).to_have_text(f"{best.threshold:.3f}")
    expect(row(page, "P(all targets met)")).to_contain_text(percent(best.met))
    expect(page.get_by_role("button", name="Best")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="In use").click()
    expect(slider(page)).to_have_value(str(the_state().operating))


def test_above_all_scores_nothing_is_called_positive(shown: Shown) -> None:
    page = shown(the_snapshot())
    slider(page).focus()
    page.keyboard.press("End")
    expect(page.locator(".picker .at")).to_contain_text("no item is predicted positive")
    expect(row(page, "Recall")).to_contain_text(percent(0.0))


@pytest.mark.parametrize("form", ["Platt", "Beta", "Isotonic"])
def test_every_map_can_be_downloaded(shown: Shown, form: str) -> None:
    page = shown(the_snapshot())
    with page.expect_download() as started:
        page.get_by_role("link", name=f"Download {form}").click()
    assert started.value.suggested_filename == f"m-curve-{form.lower()}.json"
    shown_measure = json.loads(Path(started.value.path()).read_text())
    assert shown_measure["form"] == form.lower()
    assert len(shown_measure["table"]) == len(performance().maps["platt"].scores)


def test_how_the_scores_are_seen_is_reported_without_a_hint_where_they_fit(shown: Shown) -> None:
    page = shown(the_snapshot())
    expect(page.locator(".score-models")).to_contain_text("No model has most of the weight: ranked")
    expect(page.locator(".hint")).to_have_count(0)


def test_scores_that_do_not_fit_come_with_a_hint(shown: Shown) -> None:
    expect(shown(missed_snapshot()).locator(".hint")).to_contain_text(
        "The mixture does not fit the scores well"
    )


def test_a_target_that_is_known_to_be_missed_is_reported_above_all(shown: Shown) -> None:
    page = shown(missed_snapshot())
    expect(page.locator(".problem").first).to_contain_text("Target missed: Recall (curve)")
    expect(page.locator("#problems h2")).to_contain_text("1 critical")
    expect(page.locator("#models .badge.fails")).to_have_count(1)
    expect(page).to_have_title(re.compile(r"\(\d\) m · Credence"))


def test_a_missed_target_shows_the_estimate_as_the_threshold_does(shown: Shown) -> None:
    page = shown(missed_snapshot())
    expect(page.locator(".problem .drawn").first).to_contain_text(shown_measure("recall"))
    expect(row(page, "Recall")).to_contain_text(shown_measure("recall"))


def test_while_no_target_is_missed_all_is_well(shown: Shown) -> None:
    page = shown(mail(performance(), alerts={"max_ece": 0.9}))
    expect(page.get_by_role("heading", name="No problems")).to_be_visible()
    expect(page.locator("#models .badge")).to_have_text("✓")


def test_before_anything_was_learned_the_section_says_so(shown: Shown) -> None:
    page = shown(mail(None))
    expect(page.locator("#performance")).to_contain_text("No estimate yet")
    expect(slider(page)).to_have_count(0)


def test_without_labels_the_curve_is_there_and_says_what_it_rests_on(shown: Shown) -> None:
    page = shown(mail(performance(0)))
    expect(page.locator("#performance")).to_contain_text("There are no labels yet")
    expect(page.locator("#performance")).to_contain_text("0 labels and 200 unlabelled scores")
    expect(page.locator("figure .band").first).to_be_visible()


def test_without_targets_nothing_is_said_of_them(shown: Shown) -> None:
    page = shown(mail(dataclasses.replace(performance(), targets={}, missed={}), targets={}))
    expect(slider(page)).to_be_visible()
    expect(row(page, "P(all targets met)")).to_have_count(0)
    expect(page.locator("#performance line.target")).to_have_count(0)


def test_costs_that_are_configured_are_reported_in_their_unit(shown: Shown) -> None:
    page = shown(mail(performance(), error_costs={"false_negative": 10}))
    expect(page.locator(".picker")).to_contain_text("a false positive costs 1, a false negative 10")
    there = the_state().thresholds[the_state().operating]
    expect(row(page, "Expected cost")).to_contain_text(f"{there.cost.mean:.3g} [")


def test_a_model_that_asks_nothing_of_the_kind_has_no_such_section(shown: Shown) -> None:
    taken = dataclasses.replace(
        the_snapshot(),
        settings=the_snapshot().settings.model_copy(update={"assessments": {}}),
        assessments={},
        performances={},
    )
    page = shown(taken)
    expect(page.locator("#groups")).to_be_visible()
    expect(page.locator("#performance")).to_be_hidden()


def test_scores_of_the_positive_class_are_measured_by_no_threshold(shown: Shown) -> None:
    page = shown(missed_snapshot(), "/?grouping=positive_score")
    expect(page.get_by_role("button", name="Accuracy")).to_be_visible()
    expect(page.locator("table.groups")).not_to_contain_text("P(below")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("snapshot_of", [the_snapshot, missed_snapshot], ids=["well", "missed"])
def test_all_text_stands_out_from_its_ground(
    shown: Shown, scheme: str, snapshot_of: Callable[[], ModelSnapshot]
) -> None:
    page = shown(mail(snapshot_of().performances["curve"]), color_scheme=scheme)
    page.get_by_role("button", name="Best").click()
    seen = page.evaluate(FAINT)
    assert seen["looked"] > 60
    assert seen["faint"] == []


def test_everything_to_use_has_a_name_and_headings_skip_no_level(shown: Shown) -> None:
    page = shown(missed_snapshot())
    slider(page).wait_for()
    assert page.evaluate(NAMELESS) == []
    assert page.evaluate(SKIPPED_HEADINGS) == []


def test_a_phone_need_not_scroll_sideways(shown: Shown) -> None:
    page = shown(mail(performance(), error_costs={"false_negative": 10}), **PHONE)
    slider(page).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
