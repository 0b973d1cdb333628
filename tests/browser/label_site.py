"""The labelling page of a vendor API on a real Redis and a real broker, and people in front of it."""

from __future__ import annotations

import base64
import io
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
from browsers import attentive
from office import TOKENS, VENDORS, Office
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from store_site import message, record

from service.serving.vendor_api.service import VendorService
from service.store.connection import Connection

TEAM: dict[str, Any] = {"acme": VENDORS["acme"] | {"labelling_page": True}}

Payload = Callable[[int], Mapping[str, Any]]


class Desk:
    """The page of one test, with requests to label, and the windows that people have opened.

    Attributes:
        office: the vendor API behind it.
        complaints: of all browsers.
    """

    def __init__(self, office: Office, chromium: Browser, stack: ExitStack) -> None:
        self.office = office
        self.complaints: list[str] = []
        self._chromium = chromium
        self._stack = stack

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.office.server.port}/label/"

    def ask(self, count: int, payload: Payload | None = None) -> None:
        """Have so many more requests issued."""
        start, self.office.items = self.office.items, self.office.items + count
        fields = payload or (lambda number: {"payload": f"text {number}"})
        items = range(start, self.office.items)
        self.office.site.take_in([record(i, message(f"item-{i}", **fields(i))) for i in items])
        self.office.round()

    def open(self, **options: Any) -> Page:
        """The page in a browser of its own, with nobody logged in."""
        context = self._chromium.new_context(reduced_motion="reduce", **options)
        self._stack.enter_context(closing(context))
        page = attentive(context, self.complaints)
        page.goto(self.url)
        return page

    def sit(self, name: str = "", **options: Any) -> Page:
        """The page of somebody who has logged in."""
        page = self.open(**options)
        log_in(page, name)
        page.get_by_role("button", name="Log out").wait_for()
        return page


Sit = Callable[..., Desk]


@pytest.fixture
def sit(connection: Connection, bootstrap_servers: str, chromium: Browser) -> Iterator[Sit]:
    """Opens vendor APIs with a labelling page; time passes there as everywhere, unless a clock is given."""
    with ExitStack() as stack:

        def opened(**options: Any) -> Desk:
            given = {"vendors": TEAM, "clock": time.time} | options
            return Desk(stack.enter_context(Office(connection, bootstrap_servers, **given)), chromium, stack)

        yield opened


def log_in(page: Page, name: str = "", token: str = TOKENS["acme"]) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Log in").click()


def item(page: Page) -> str:
    """Id of the item that is shown, once one is."""
    title = page.locator("#item-title")
    expect(title).to_contain_text("item-")
    return re.sub(r"^.*· ?", "", title.inner_text())


def press(page: Page, *keys: str) -> list[str]:
    """Press keys, each when another item is shown than before; the ids of these items."""
    seen: list[str] = []
    for key in keys:
        if seen:
            expect(page.locator("#item-title")).not_to_contain_text(re.compile(rf"{seen[-1]}$"))
        seen.append(item(page))
        page.keyboard.press(key)
    return seen


def await_sent(page: Page, labelled: int) -> None:
    """Wait until so many items were labelled, and Kafka has all that was said."""
    figures = page.locator(".progress")
    expect(figures).to_contain_text(re.compile(rf"Labelled\s*{labelled}(?!\d)"))
    expect(figures).not_to_contain_text(re.compile("Sending|Not sent"))


def picture_url(shade: int) -> str:
    """A small image, inline."""
    content = io.BytesIO()
    Image.new("RGB", (24, 24), (shade % 256, 120, 255 - shade % 256)).save(content, "png")
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def block(desk: Desk, page: Page) -> tuple[str, VendorService | None]:
    """Label an item that cannot be sent; its id, and what makes it possible again."""
    item(page)
    service, desk.office.service = desk.office.service, None
    (labelled,) = press(page, "2")
    expect(page.locator(".progress")).to_contain_text("Not sent yet")
    return labelled, service


def who(desk: Desk, count: int) -> set[tuple[str, str]]:
    """Which items were labelled by whom, of the first labels."""
    return {(label["item_id"], label["annotator"]) for label in desk.office.read_labels(count)}
