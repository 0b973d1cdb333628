"""What payloads may do on the labelling page: be seen. They come from outside, and some are hostile."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from label_site import Sit, await_sent, item, picture_url
from playwright.sync_api import Page, Route, expect

HOSTILE = "<img src=x onerror=\"document.title='taken over'\"><script>document.title='taken over'</script>"
ALLOWED = "https://images.example"
SVG = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>").decode()


def shown(sit: Sit, **fields: Any) -> Page:
    """The page with one item."""
    desk = sit(api={"image_origins": [ALLOWED]})
    desk.ask(1, lambda _: fields)
    page = desk.sit()
    item(page)
    return page


def content(page: Page) -> str:
    return page.get_by_role("region", name="Payload").inner_text()


def images(page: Page) -> list[str]:
    found: list[str] = page.locator("#shown img").evaluate_all("images => images.map((one) => one.src)")
    return found


def each_of(sit: Sit, fields: list[dict[str, Any]]) -> Iterator[tuple[Page, dict[str, Any]]]:
    """The page with each of these items, one after the other, and what the item was made from."""
    desk = sit(api={"image_origins": [ALLOWED]})
    desk.ask(len(fields), lambda number: fields[number])
    page = desk.sit()
    for labelled in range(1, len(fields) + 1):
        shown_now = item(page)
        yield page, fields[int(shown_now.removeprefix("item-"))]
        page.keyboard.press("1")
        expect(page.locator(".last")).to_contain_text(shown_now)
        await_sent(page, labelled=labelled)
    assert desk.complaints == []


def test_html_is_text(sit: Sit) -> None:
    payloads = [HOSTILE, {"note": HOSTILE}, {HOSTILE: 1}, [[HOSTILE]]]
    for page, _ in each_of(sit, [{"payload": payload} for payload in payloads]):
        assert HOSTILE in content(page)
        assert images(page) == []
        assert page.title() == "Label · Credence"


def test_hostile_names_of_items_and_classes_are_text(sit: Sit) -> None:
    desk = sit(model={"classes": ["cat", "dog", HOSTILE]})
    desk.ask(2, lambda number: {"item_id": f"item-{number} {HOSTILE}", "payload": "text"})
    page = desk.sit("<b>ana</b>")
    item(page)
    page.keyboard.press("3")
    await_sent(page, labelled=1)
    expect(page.locator(".last")).to_contain_text(f"labelled {HOSTILE}")
    assert page.title() == "Label · Credence"
    assert desk.complaints == []


def test_json_is_a_table(sit: Sit) -> None:
    payload = {"title": "Parcel", "lines": [{"sku": "A-1", "n": 2}], "vip": False, "note": None, "empty": []}
    page = shown(sit, payload=payload)
    rows = page.locator(".content > table > tbody > tr")
    expect(rows).to_have_count(5)
    assert re.sub(r"\s+", " ", rows.nth(1).inner_text()) == "lines 0 sku A-1 n 2"
    assert [rows.nth(i).inner_text().split()[1] for i in (2, 3, 4)] == ["false", "null", "[]"]


def test_without_a_payload_the_page_says_so(sit: Sit) -> None:
    expect(shown(sit).locator("#shown")).to_contain_text("the request has no payload")


def test_deep_and_large_payloads_do_not_stop_anybody(sit: Sit) -> None:
    deep: Any = "bottom"
    for _ in range(60):
        deep = [deep]
    wide = {f"key-{i}": HOSTILE for i in range(120)}
    payloads = [deep, {"rows": list(range(2_500))}, "long " * 3_000, wide, [[list(range(10))] * 20] * 20, 0]
    for page, _ in each_of(sit, [{"payload": payload} for payload in payloads]):
        assert content(page)
        assert page.locator("#shown *").count() < 10_000


def test_a_long_list_is_shown_in_part(sit: Sit) -> None:
    assert "… 100 more" in content(shown(sit, payload={"rows": list(range(300))}))


def test_an_address_that_is_not_of_the_web_is_no_link(sit: Sit) -> None:
    addresses = [
        "javascript:document.title='taken over'",
        "JaVaScRiPt:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "s3://bucket/key.png",
        "//images.example/1.png",
        "https:",
    ]
    for page, fields in each_of(sit, [{"payload_uri": address} for address in addresses]):
        expect(page.locator(".address")).to_have_text(fields["payload_uri"])
        assert page.locator("#shown a").count() == 0
        assert images(page) == []


def test_an_address_of_the_web_is_a_link_that_tells_nothing_of_this_page(sit: Sit) -> None:
    page = shown(sit, payload_uri="https://elsewhere.example/17.png")
    link = page.locator("#shown a")
    expect(link).to_have_attribute("href", "https://elsewhere.example/17.png")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert images(page) == [], "its origin is not configured"


def serve_picture(page: Page) -> list[str]:
    """Answers for the host of images; the addresses that were asked for, each with its referrer."""
    asked: list[str] = []
    png = base64.b64decode(picture_url(1).partition(",")[2])

    def answer(route: Route) -> None:
        asked.append(f"{route.request.url} {route.request.headers.get('referer', '')}")
        route.fulfill(body=png, content_type="image/png")

    page.route(f"{ALLOWED}/**", answer)
    return asked


@pytest.mark.parametrize(
    "fields",
    [
        {"payload_uri": f"{ALLOWED}/17"},
        {"payload": f"{ALLOWED}/17.png"},
        {"payload": {"url": f"{ALLOWED}/17.png", "size": 3}},
    ],
    ids=["uri", "text", "value"],
)
def test_an_image_of_a_configured_origin_is_shown(sit: Sit, fields: Any) -> None:
    desk = sit(api={"image_origins": [ALLOWED]})
    desk.ask(1, lambda _: fields)
    page = desk.open()
    asked = serve_picture(page)
    page.get_by_label("Token").fill("token-of-acme")
    page.get_by_role("button", name="Log in").click()
    item(page)
    expect(page.locator("#shown img")).to_have_class("tiny")
    assert {one.strip() for one in asked} in ({f"{ALLOWED}/17"}, {f"{ALLOWED}/17.png"})
    assert desk.complaints == []


def test_an_image_that_cannot_be_loaded_is_reported(sit: Sit) -> None:
    desk = sit(api={"image_origins": [ALLOWED]})
    desk.ask(1, lambda _: {"payload_uri": f"{ALLOWED}/17.png"})
    page = desk.open()
    page.route(f"{ALLOWED}/**", lambda route: route.abort())
    page.get_by_label("Token").fill("token-of-acme")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".picture")).to_contain_text("could not be loaded")


def test_an_inline_image_is_shown_and_other_data_is_text(sit: Sit) -> None:
    picture = picture_url(7)
    bad = [
        f"data:image/svg+xml;base64,{SVG}",
        "data:text/html;base64,PGI+",
        f"{picture}<b>",
        picture.replace("png", "gif"),
    ]
    page = shown(sit, payload={"picture": picture, **{f"bad-{i}": each for i, each in enumerate(bad)}})
    expect(page.locator("#shown img")).to_have_class("tiny")
    assert images(page) == [picture]
    assert all(each in content(page) for each in bad)


def test_the_policy_holds_whatever_a_script_would_load(sit: Sit) -> None:
    page = shown(sit, payload="text")
    blocked = page.evaluate(
        """async () => {
          const found = [];
          const note = (event) => found.push(event.effectiveDirective);
          document.addEventListener("securitypolicyviolation", note);
          const image = new Image();
          image.src = "https://elsewhere.example/pixel.png";
          await fetch("https://elsewhere.example/").catch(() => null);
          document.body.insertAdjacentHTML("beforeend", "<p style='color: red' onclick='alert(1)'>x</p>");
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken over'";
          document.body.append(script);
          await new Promise((resolve) => setTimeout(resolve, 0));
          return found.sort();
        }"""
    )
    assert {"connect-src", "img-src", "script-src-elem", "style-src-attr"} <= set(blocked), json.dumps(
        blocked
    )
    assert page.title() == "Label · Credence"
