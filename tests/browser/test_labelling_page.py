"""Labelling in the browser; every label goes to a real broker and into a real store."""

from __future__ import annotations

import re
import time

from harness import wait_for
from label_site import Sit, await_sent, item, log_in, picture_url, press
from playwright.sync_api import Page, Route, expect

from service.store.request_registry import opinion_of

MANY = [f"{number:03d} {['otter', 'lynx', 'heron', 'adder'][number % 4]}" for number in range(1_000)]


def said(labels: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(label["kind"], label["item_id"], label.get("true_class", "")) for label in labels]


def test_numbers_choose_classes_and_minus_skips(sit: Sit) -> None:
    desk = sit()
    desk.ask(5)
    page = desk.sit("desk-7")
    items = press(page, "1", "3", "-")
    await_sent(page, labelled=2)
    labels = desk.office.read_labels(3)
    assert said(labels) == [("answer", items[0], "cat"), ("answer", items[1], "owl"), ("skip", items[2], "")]
    assert {label["annotator"] for label in labels} == {"desk-7"}
    expect(page.locator(".progress")).to_contain_text("1 (33%)")
    assert desk.office.true_classes() == ["cat", "owl"]
    assert desk.complaints == []


def test_sixty_items_are_labelled_in_a_minute(sit: Sit) -> None:
    desk = sit()
    desk.ask(64)
    page = desk.sit()
    item(page)
    began = time.monotonic()
    items = press(page, *("123"[number % 3] for number in range(60)))
    await_sent(page, labelled=60)
    seconds = time.monotonic() - began
    assert sorted(label["item_id"] for label in desk.office.read_labels(60)) == sorted(items)
    assert seconds < 60, "it takes 4 s on a machine with nothing else to do"


def test_a_class_of_one_digit_has_it_as_its_key(sit: Sit) -> None:
    digits = [str(number) for number in range(10)]
    desk = sit(model={"classes": digits})
    desk.ask(2, lambda number: {"payload": f"text {number}", "predicted_class": "0"})
    page = desk.sit()
    press(page, "7", "0")
    await_sent(page, labelled=2)
    assert [label["true_class"] for label in desk.office.read_labels(2)] == ["7", "0"]


def test_one_of_a_thousand_classes_is_found_by_typing(sit: Sit) -> None:
    desk = sit(model={"classes": MANY})
    desk.ask(3, lambda number: {"payload": f"text {number}", "predicted_class": MANY[0]})
    page = desk.sit()
    item(page)
    find = page.get_by_role("combobox", name="Class")
    expect(find).to_be_focused()
    page.keyboard.type("LYNX")
    expect(page.get_by_role("option").first).to_have_text("001 lynx")
    expect(page.locator(".finder")).to_contain_text("60 of 250 classes")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    await_sent(page, labelled=1)
    expect(find).to_have_value("")
    page.keyboard.type("otter")
    page.keyboard.press("Escape")
    page.keyboard.type("77 ly")
    page.keyboard.press("Enter")
    await_sent(page, labelled=2)
    assert [label["true_class"] for label in desk.office.read_labels(2)] == ["005 lynx", "077 lynx"]


def test_numbers_choose_the_first_of_many_classes_whose_names_have_none(sit: Sit) -> None:
    animals = [
        f"{kind} {name}" for kind in ("brown", "white") for name in ("otter", "lynx", "hare", "owl", "fox")
    ]
    desk = sit(model={"classes": animals})
    desk.ask(2, lambda number: {"payload": f"text {number}", "predicted_class": animals[0]})
    page = desk.sit()
    press(page, "9", "2")
    await_sent(page, labelled=2)
    assert [label["true_class"] for label in desk.office.read_labels(2)] == ["white owl", "brown lynx"]


def test_typing_goes_to_the_search_wherever_the_focus_is(sit: Sit) -> None:
    desk = sit(model={"classes": MANY})
    desk.ask(1, lambda _: {"payload": "text", "predicted_class": MANY[0]})
    page = desk.sit()
    page.get_by_role("region", name="Payload").click()
    page.keyboard.type("998")
    page.keyboard.press("Enter")
    await_sent(page, labelled=1)
    assert [label["true_class"] for label in desk.office.read_labels()] == ["998 heron"]


def test_an_answer_is_undone_by_a_correction(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    first, second = press(page, "1", "2")
    page.keyboard.press("Backspace")
    expect(page.locator(".revised")).to_contain_text("You labelled this item dog")
    page.keyboard.press("Backspace")
    expect(page.locator("#item-title")).to_contain_text(first)
    page.keyboard.press("3")
    third = item(page)
    assert third not in {first, second}
    await_sent(page, labelled=2)
    assert said(desk.office.read_labels(3))[2] == ("correction", first, "owl")
    assert desk.office.true_classes() == ["cat", "dog", "owl"]


def test_what_is_kept_is_not_sent_again(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit()
    press(page, "1")
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+z")
    page.keyboard.press("1")
    press(page, "2")
    await_sent(page, labelled=2)
    assert [label["true_class"] for label in desk.office.read_labels(2)] == ["cat", "dog"]


def test_a_skip_is_undone_and_a_label_is_taken_back(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit()
    skipped, labelled = press(page, "-", "1")
    page.keyboard.press("Backspace")
    page.get_by_role("button", name="Take label back").click()
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.press("2")
    await_sent(page, labelled=1)
    assert said(desk.office.read_labels(4))[2:] == [
        ("retraction", labelled, ""),
        ("correction", skipped, "dog"),
    ]
    assert desk.office.site.letters.reasons == []


def hold_answers(page: Page) -> list[Route]:
    """Has answers wait; `continue_` sends them."""
    held: list[Route] = []
    page.route(re.compile(r"/(answer|skip|correction)$"), lambda route: held.append(route))  # noqa: PLW0108 - a builtin method is not taken
    return held


def test_a_reload_loses_nothing(sit: Sit) -> None:
    desk = sit()
    desk.ask(6)
    page = desk.sit("ana")
    held = hold_answers(page)
    items = press(page, "1", "2")
    shown = item(page)
    page.wait_for_function("JSON.stringify(sessionStorage).includes('dog')")
    assert len(held) == 1, "one answer is on its way, one waits"
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    assert item(page) == shown
    await_sent(page, labelled=2)
    assert {one[:2] for one in said(desk.office.read_labels(2))} == {
        ("answer", items[0]),
        ("answer", items[1]),
    }
    page.keyboard.press("Backspace")
    expect(page.locator("#item-title")).to_contain_text(items[1])
    page.keyboard.press("3")
    await_sent(page, labelled=2)
    assert said(desk.office.read_labels()) == [("correction", items[1], "owl")]


def test_two_people_at_once_never_get_the_same_request(sit: Sit) -> None:
    desk = sit()
    desk.ask(36)
    ana, ben = desk.sit("ana"), desk.sit("ben")
    seen: dict[str, list[str]] = {"ana": [], "ben": []}
    for _ in range(12):
        seen["ana"] += press(ana, "1")
        seen["ben"] += press(ben, "2")
        for page, name in ((ana, "ana"), (ben, "ben")):
            expect(page.locator(".last")).to_contain_text(seen[name][-1])
    await_sent(ana, labelled=12)
    await_sent(ben, labelled=12)
    assert len({*seen["ana"], *seen["ben"]}) == 24
    labels = desk.office.read_labels(24)
    assert {(label["item_id"], label["annotator"]) for label in labels} == {
        (each, name) for name, items in seen.items() for each in items
    }


def test_two_who_give_no_name_get_different_requests_too(sit: Sit) -> None:
    desk = sit()
    desk.ask(12)
    assert item(desk.sit()) != item(desk.sit())


def test_a_second_tab_waits_for_the_first(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    first = desk.sit()
    shown = item(first)
    second = first.context.new_page()
    second.goto(desk.url)
    expect(second.locator("#notice")).to_contain_text("open in another tab")
    expect(second.locator("#item-title")).to_have_count(0)
    first.close()
    assert item(second) == shown


def test_a_grid_of_images_takes_classes_by_number_and_moves_by_arrows(sit: Sit) -> None:
    desk = sit()
    desk.ask(12, lambda number: {"payload": picture_url(number * 20)})
    page = desk.sit()
    page.get_by_role("button", name="Grid").click()
    cells = page.locator(".cell")
    expect(cells).to_have_count(12)
    cells.first.focus()
    page.keyboard.press("2")
    expect(cells.nth(0)).to_have_attribute("aria-label", re.compile("labelled dog"))
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("1")
    expect(cells.nth(2)).to_have_attribute("aria-label", re.compile("labelled cat"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(cells.nth(0)).to_be_focused()
    page.keyboard.press("3")
    expect(cells.nth(0)).to_have_attribute("aria-label", re.compile("labelled owl"))
    await_sent(page, labelled=2)
    assert [label["kind"] for label in desk.office.read_labels(3)] == ["answer", "answer", "correction"]
    for _ in range(10):
        page.keyboard.press("1")
    expect(page.locator(".nothing")).to_contain_text("No requests are waiting")
    await_sent(page, labelled=12)
    assert len(desk.office.read_labels(10)) == 10


def test_requests_appear_by_themselves(sit: Sit) -> None:
    desk = sit()
    page = desk.sit()
    expect(page.locator(".nothing")).to_contain_text("No requests are waiting")
    desk.ask(1)
    assert item(page) == "item-0"


def test_a_second_persons_label_is_requested_from_somebody_else(sit: Sit) -> None:
    desk = sit(model={"labels_per_item": {"least": 2, "most": 2}})
    desk.ask(1)
    page = desk.open()
    log_in(page)
    expect(page.locator("#login-problem")).to_contain_text("enter your name")
    log_in(page, "ana")
    press(page, "2")
    await_sent(page, labelled=1)
    desk.office.read_labels()
    desk.office.round()
    ben = desk.sit("ben")
    expect(ben.locator(".facts-of-item")).to_contain_text("Opinion 2")
    expect(page.locator("#item-title")).to_have_count(0)
    press(ben, "1")
    await_sent(ben, labelled=1)
    (label,) = desk.office.read_labels()
    assert (opinion_of(label["request_id"]), label["annotator"]) == (2, "ben")


def test_a_revealed_prediction_is_shown(sit: Sit) -> None:
    desk = sit(assessment={"reveal_prediction": True})
    desk.ask(1)
    expect(desk.sit().locator(".facts-of-item")).to_contain_text("The model predicts cat (75.0%)")


def test_the_items_of_somebody_who_went_away_go_back(sit: Sit) -> None:
    desk = sit(api={"lease_seconds": 10.0})
    desk.ask(1)
    away = desk.sit("ana")
    item(away)
    expect(away.locator(".nothing")).to_contain_text("You have been away")
    assert item(desk.sit("ben")) == "item-0"


def test_the_claims_of_somebody_who_is_there_are_renewed(sit: Sit) -> None:
    # By the clock of the page most of a lease is over when it is granted; none ends while the page stalls.
    desk = sit(api={"lease_seconds": 300.0}, clock=lambda: time.time() - 200)
    desk.ask(1)
    page = desk.sit("ana")
    item(page)
    (first,) = desk.office.caller("acme").get("/claims").claims

    def is_renewed() -> bool:
        (held,) = desk.office.caller("acme").get("/claims").claims
        assert held["claim_id"] == first["claim_id"]
        return bool(held["leased_until"] > first["leased_until"])

    wait_for(is_renewed, seconds=60, what="a renewed claim")


def test_who_logs_out_lets_others_have_what_was_claimed(sit: Sit) -> None:
    desk = sit()
    desk.ask(5)
    page = desk.sit("ana")
    press(page, "1")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    desk.office.read_labels()
    (model,) = desk.office.caller("acme").get("/models").body["models"]
    assert model["waiting"] == 4
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()


def test_what_was_labelled_when_the_session_ended_is_sent_after_the_next_login(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    item(page)
    page.context.clear_cookies()
    items = press(page, "2")
    expect(page.locator("#notice")).to_contain_text("what you have labelled is kept")
    log_in(page, "ana")
    await_sent(page, labelled=1)
    assert said(desk.office.read_labels()) == [("answer", items[0], "dog")]


def test_answers_wait_while_the_api_is_unavailable(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit()
    item(page)
    service, desk.office.service = desk.office.service, None
    press(page, "2")
    expect(page.locator(".progress")).to_contain_text("Not sent yet")
    desk.office.service = service
    await_sent(page, labelled=1)
    assert [label["true_class"] for label in desk.office.read_labels()] == ["dog"]


def test_an_answer_that_is_refused_is_reported(sit: Sit) -> None:
    desk = sit()
    desk.ask(1)
    page = desk.sit()
    item(page)
    acme = desk.office.caller("acme")
    (claim,) = acme.get("/claims").claims
    assert acme.answer(claim, "owl").status == 202
    desk.office.read_labels()
    press(page, "1")
    expect(page.locator("#notice")).to_contain_text("Your answer about item-0 was refused")
    expect(page.locator(".progress")).to_contain_text(re.compile(r"Labelled\s*0"))


def test_single_keys_can_be_turned_off(sit: Sit) -> None:
    desk = sit()
    desk.ask(2)
    page = desk.sit()
    shown = item(page)
    page.keyboard.press("?")
    page.get_by_label("Single keys are shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("1")
    assert item(page) == shown
    page.get_by_role("button", name="dog").click()
    await_sent(page, labelled=1)
    assert [label["true_class"] for label in desk.office.read_labels()] == ["dog"]
