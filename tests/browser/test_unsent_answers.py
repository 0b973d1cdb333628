"""Answers that the labelling page cannot send yet are neither lost nor sent as somebody else's."""

from __future__ import annotations

from label_site import Sit, await_sent, block, item, log_in, press, who
from playwright.sync_api import Route, expect


def test_who_logs_out_with_unsent_answers_is_asked_first(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    labelled, service = block(desk, page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 answer not sent yet")
    page.get_by_role("button", name="Stay").click()
    desk.office.service = service
    await_sent(page, labelled=1)
    assert who(desk, 1) == {(labelled, "ana")}


def test_who_leaves_all_the_same_loses_them(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    block(desk, page)
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Leave and lose 1 answer").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_unsent_answers_wait_for_their_own_person(sit: Sit) -> None:
    desk = sit()
    desk.ask(6)
    page = desk.sit("ana")
    item(page)
    page.context.clear_cookies()
    (labelled,) = press(page, "2")
    expect(page.locator("#notice")).to_contain_text("what you have labelled is kept")
    log_in(page, "ben")
    expect(page.get_by_text("acme · ben")).to_be_visible()
    item(page)
    (other,) = press(page, "1")
    await_sent(page, labelled=1)
    assert who(desk, 1) == {(other, "ben")}
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    log_in(page, "ana")
    page.get_by_role("button", name="Log out").wait_for()
    assert who(desk, 1) == {(labelled, "ana")}


def test_a_tab_sends_nothing_as_somebody_who_logged_in_in_another_tab(sit: Sit) -> None:
    desk = sit()
    desk.ask(6)
    page = desk.open()
    second = page.context.new_page()
    second.goto(desk.url)
    second.get_by_label("Token").wait_for()
    log_in(page, "ana")
    labelled, service = block(desk, page)
    log_in(second, "ben")
    expect(page.get_by_text("acme · ana")).to_have_count(0)
    desk.office.service = service
    second.close()
    expect(page.get_by_text("acme · ben")).to_be_visible()
    item(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    log_in(page, "ana")
    await_sent(page, labelled=0)
    assert who(desk, 1) == {(labelled, "ana")}


def test_a_proxys_answer_is_no_answer_of_credence(sit: Sit) -> None:
    desk = sit()
    desk.ask(3)
    page = desk.sit("ana")
    item(page)
    replies = iter([200, 403, 404])
    seen: list[int] = []

    def proxy(route: Route) -> None:
        status = next(replies, None)
        if status is None:
            route.continue_()
            return
        seen.append(status)
        route.fulfill(
            status=status, content_type="text/html", body="<h1>Sign in</h1>", headers={"Retry-After": "0.1"}
        )

    page.route("**/answer", proxy)
    (labelled,) = press(page, "2")
    expect(page.locator(".progress")).to_contain_text("Not sent yet")
    await_sent(page, labelled=1)
    assert seen == [200, 403, 404]
    assert who(desk, 1) == {(labelled, "ana")}
