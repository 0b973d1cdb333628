"""The status page, as people see and use it."""

from __future__ import annotations

import json
import re
import urllib.parse
from http import HTTPStatus
from typing import Any

import pytest
from harness import wait_for
from looking import FAINT, NAMELESS, SKIPPED_HEADINGS
from page_site import HOSTILE, Open, Site
from playwright.sync_api import Locator, Page, Route, expect

COLUMNS = {
    "group": "ascending",
    "uncertainty": "descending",
    "accuracy": "ascending",
    "ece": "descending",
    "gap": "descending",
    "share": "descending",
    "labels": "descending",
}
OTHER = {"ascending": "descending", "descending": "ascending"}
SOUTH = "/?model=sorter&grouping=region&group=south"
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}


def regions(site: Site, sort: str, direction: str) -> list[str]:
    """Names of the regions as the API sorts them."""
    order = direction.removesuffix("ending")
    table = site.api("/models/sorter/groups", grouping="region", sort=sort, order=order)
    return [group["group"] for group in table["groups"]]


def rows(page: Page) -> Locator:
    """Names of the groups shown."""
    return page.locator("tr.row .name")


def figure(page: Page, term: str) -> Locator:
    """One of the numbers about the whole model."""
    return page.locator(".vitals > div", has=page.get_by_text(term, exact=True)).locator(".figure")


def low_south(page: Page) -> Locator:
    """The problem with the accuracy of the weak group."""
    return page.locator(".problem", has=page.get_by_text("Accuracy below target: region = south"))


def without_problems(route: Route) -> None:
    """Answers as the server does, but lists no problems."""
    reply = route.fetch()
    route.fulfill(response=reply, json=reply.json() | {"problems": []})


def test_nothing_is_complained_of_and_no_other_host_is_asked(visit: Open, complaints: list[str]) -> None:
    visit(SOUTH).locator("#detail figure").nth(1).wait_for()
    assert complaints == []


def test_the_weak_group_is_told_as_a_problem(visit: Open) -> None:
    problem = low_south(visit())
    expect(problem).to_contain_text(re.compile(r"threshold 80%; (over )?9\d\.\d% probability of being below"))


def test_api_metrics_and_readiness_of_a_process_say_the_same(site: Site) -> None:
    def agree() -> bool:
        line = site.api("/models/sorter")["headline"]
        status, body = site.process.get("/readyz")
        assert status == HTTPStatus.OK, "a sick model takes no process out of service"
        metrics = site.process.get("/metrics")[1]
        counts = {
            severity: f'credence_model_problems{{model="sorter",severity="{severity}"}} {line[severity]:.1f}'
            for severity in ("critical", "warning", "info")
        }
        same = json.loads(body)["models"] == {"sorter": line["status"]}
        return bool(line["problem_count"]) and same and all(one in metrics for one in counts.values())

    # They may be a round apart.
    wait_for(agree, seconds=30, what="the same state everywhere")


def test_score_bins_are_measured_by_no_threshold(visit: Open) -> None:
    page = visit("/?model=sorter&grouping=score_bin")
    expect(page.get_by_role("button", name="Accuracy")).to_be_visible()
    expect(page.locator("table.groups")).not_to_contain_text("P(below")
    expect(page.locator("table.groups line.target")).to_have_count(0)


def test_a_problem_leads_to_its_runbook(visit: Open) -> None:
    page = visit()
    low_south(page).get_by_role("link", name="Runbook").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("CredenceGroupAccuracyLow")


def test_a_problem_leads_to_its_group(visit: Open) -> None:
    page = visit("/?grouping=class")
    low_south(page).get_by_role("link", name="Details").click()
    expect(page.get_by_role("link", name="south", exact=True)).to_be_focused()
    assert urllib.parse.urlsplit(page.url).query == SOUTH.removeprefix("/?")


def test_a_click_on_any_header_sorts_by_it(visit: Open, site: Site) -> None:
    page = visit("/?grouping=region")
    for column, direction in COLUMNS.items():
        page.locator(f"[data-sort={column}]").click()
        expect(page.locator(f"th:has([data-sort={column}])")).to_have_attribute("aria-sort", direction)
        expect(rows(page)).to_have_text(regions(site, column, direction))


def test_enter_on_the_header_sorted_by_turns_the_order(visit: Open, site: Site) -> None:
    page = visit("/?grouping=region")
    for column, direction in COLUMNS.items():
        button = page.locator(f"[data-sort={column}]")
        button.press("Enter")
        button.press("Enter")
        expect(page.locator(f"th:has([data-sort={column}])")).to_have_attribute("aria-sort", OTHER[direction])
        expect(rows(page)).to_have_text(regions(site, column, OTHER[direction]))


def test_search_keeps_the_groups_that_fit(visit: Open) -> None:
    page = visit("/?grouping=region")
    page.get_by_label("Search groups").fill("SOU")
    expect(rows(page)).to_have_text(["south"])


def test_a_link_opens_its_group_with_timeline_and_reliability(visit: Open) -> None:
    page = visit(SOUTH)
    expect(page.get_by_role("link", name="south", exact=True)).to_be_focused()
    expect(page.locator("#detail h4")).to_have_text(["Accuracy over time", "Reliability: accuracy by score"])
    expect(page.locator("#detail .bin")).not_to_have_count(0)


def test_a_group_is_opened_and_closed_with_the_keyboard(visit: Open) -> None:
    page = visit("/?grouping=region")
    link = page.get_by_role("link", name="north", exact=True)
    link.press("Enter")
    expect(page.locator("#detail")).to_contain_text("What to do next")
    link.press("Enter")
    expect(page.locator("#detail")).to_have_count(0)


def test_back_returns_to_the_grouping_before(visit: Open) -> None:
    page = visit("/?grouping=region")
    page.get_by_role("navigation", name="Groupings").get_by_role("link", name="class").click()
    expect(rows(page).filter(has_text="owl")).to_be_visible()
    page.go_back()
    expect(rows(page).filter(has_text="south")).to_be_visible()


def test_a_link_to_a_group_that_is_not_there_says_so(visit: Open) -> None:
    page = visit("/?model=sorter&grouping=region&group=atlantis")
    expect(page.get_by_role("alert")).to_contain_text("atlantis")


def test_the_confusion_matrix_has_a_cell_with_an_interval_for_every_pair(visit: Open) -> None:
    cells = visit().locator("table.confusion td")
    expect(cells).to_have_count(9)
    expect(cells.first).to_have_text(re.compile(r"^\d+\.\d\[\d+\.\d,\s\d+\.\d\]$"))


def test_an_identification_shows_who_is_worst(visit: Open) -> None:
    ranking = visit().locator(".card", has_text="Which region is the least accurate?").locator("tbody tr")
    expect(ranking.first).to_contain_text("south")


def test_recent_labels_are_listed(visit: Open) -> None:
    given = visit().get_by_role("region", name="Labels", exact=True).locator("tbody tr")
    expect(given).to_have_count(50)


def test_a_hostile_name_is_text(visit: Open) -> None:
    page = visit(f"/?grouping=region&group={urllib.parse.quote(HOSTILE)}")
    page.locator("#detail figure").first.wait_for()
    expect(rows(page).filter(has_text=HOSTILE)).to_be_visible()
    expect(page.locator("main img")).to_have_count(0)
    expect(page).to_have_title(re.compile("Credence$"))


def test_new_labels_are_shown_without_disturbing_the_reader(visit: Open, site: Site) -> None:
    page = visit(SOUTH)
    before = figure(page, "Labels").inner_text()
    page.get_by_label("Search groups").press_sequentially("sout")
    page.locator("#detail figure").first.wait_for()
    shown_at = page.get_by_label("Search groups").bounding_box()
    wait_for(site.labeller.answer, seconds=30, what="another label request")
    expect(figure(page, "Labels")).not_to_have_text(before)
    expect(page.get_by_label("Search groups")).to_be_focused()
    expect(page.get_by_label("Search groups")).to_have_value("sout")
    expect(page.locator("#detail")).to_be_visible()
    # What is above may have grown; then the page is scrolled by as much, in whole pixels.
    assert page.get_by_label("Search groups").bounding_box() == pytest.approx(shown_at, abs=1)


def test_what_has_the_focus_stays_in_place_when_the_list_of_problems_shrinks(visit: Open) -> None:
    page = visit("/?model=sorter&grouping=region", viewport={"width": 1280, "height": 400})
    search = page.get_by_label("Search groups")
    search.focus()
    shown_at = search.bounding_box()
    page.route("**/api/v1/models/sorter", without_problems)
    expect(low_south(page)).to_have_count(0)
    assert search.bounding_box() == pytest.approx(shown_at, abs=1)


def test_when_the_server_dies_the_page_says_so_and_keeps_what_was_known(visit: Open, site: Site) -> None:
    with site.deployment.process("serve") as server:
        wait_for(server.ready, seconds=30, what="serve")
        wait_for(
            lambda: '"south"' in server.get("/api/v1/models/sorter")[1], seconds=30, what="its first snapshot"
        )
        page = visit(url=f"http://127.0.0.1:{server.page_port}")
        server.kill()
        expect(page.get_by_role("alert")).to_contain_text("has not answered")
        expect(page.locator("#freshness")).to_contain_text("Unreachable")
        expect(low_south(page)).to_be_visible()


@pytest.mark.parametrize("place", ["/", SOUTH])
def test_a_phone_need_not_scroll_sideways(visit: Open, place: str) -> None:
    page = visit(place, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def test_a_phone_sorts_by_a_list(visit: Open, site: Site) -> None:
    page = visit("/?grouping=region", **PHONE)
    page.get_by_label("Sort by").select_option("share")
    expect(rows(page)).to_have_text(regions(site, "share", "descending"))


def test_a_dark_page_is_dark(visit: Open) -> None:
    page = visit(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 22)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(visit: Open, scheme: str) -> None:
    page = visit(SOUTH, color_scheme=scheme)
    page.locator("#detail figure").first.wait_for()
    seen = page.evaluate(FAINT)
    assert seen["looked"] > 100
    assert seen["faint"] == []


def test_everything_to_use_has_a_name(visit: Open) -> None:
    page = visit(SOUTH)
    page.locator("#detail figure").first.wait_for()
    assert page.evaluate(NAMELESS) == []


def test_headings_skip_no_level(visit: Open) -> None:
    page = visit(SOUTH)
    page.locator("#detail figure").first.wait_for()
    assert page.evaluate(SKIPPED_HEADINGS) == []


def test_the_skip_link_comes_first_and_leads_to_the_problems(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the problems")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_where_groups_share_a_target_the_column_names_it(visit: Open) -> None:
    table = visit("/?model=sorter&grouping=region").locator("table.groups")
    expect(table).to_contain_text("P(below 80%)")
    expect(table.locator("thead")).not_to_contain_text("Target")
