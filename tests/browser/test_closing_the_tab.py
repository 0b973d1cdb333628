"""Who closes a tab with answers that are not sent is asked first, for whatever reason they are not."""

from __future__ import annotations

from label_site import Sit, await_sent, block, item, press, who
from playwright.sync_api import Page, Route, expect


def close_and_stay(page: Page) -> None:
    """Close the tab, which asks, and stay; an error if it does not ask, and closes."""
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()


def unsent(page: Page) -> int:
    """How many answers the tab has in its memory."""
    return page.evaluate(
        "Object.values(sessionStorage).reduce((sum, one) => sum + (JSON.parse(one).outbox ?? []).length, 0)"
    )


def test_a_tab_asks_while_its_answers_wait_for_a_slow_reply(sit: Sit) -> None:
    # The first is on its way. Those after it are in the tab's memory alone.
    desk = sit()
    desk.ask(6)
    page = desk.sit("ana")
    item(page)
    held: list[Route] = []
    page.route("**/answer", lambda route: held.append(route))  # noqa: PLW0108 - it marks handlers
    press(page, "2", "2", "2")
    expect(page.locator(".progress")).to_contain_text("Sending")
    assert unsent(page) == 3
    close_and_stay(page)


def test_a_tab_asks_after_its_session_has_ended(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    item(page)
    page.context.clear_cookies()
    press(page, "2")
    expect(page.locator("#notice")).to_contain_text("what you have labelled is kept")
    assert unsent(page) == 1
    close_and_stay(page)


def test_a_tab_asks_after_a_reload_while_nothing_answers(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    block(desk, page)
    page.route("**/label/session", lambda route: route.fulfill(status=503))
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.locator("#notice")).to_contain_text("Trying again")
    page.mouse.click(5, 5)  # browsers ask nothing in a page that nobody has touched
    assert unsent(page) == 1
    close_and_stay(page)


def test_a_tab_that_stays_sends_its_answers_later(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    labelled, service = block(desk, page)
    close_and_stay(page)
    desk.office.service = service
    await_sent(page, labelled=1)
    assert who(desk, 1) == {(labelled, "ana")}


def test_a_tab_does_not_ask_when_all_was_sent(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    item(page)
    press(page, "2")
    await_sent(page, labelled=1)
    with page.expect_event("close"):
        page.close(run_before_unload=True)
