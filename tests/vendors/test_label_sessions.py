"""Logins to the labelling page, and calls of its sessions, as any client might send them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from office import LABEL_KEYS, TOKENS, V1, VENDORS, Caller, Clock, Office, Open, Told, sha256

from service.serving.label_page.sessions import COOKIE, Sessions

PAGE = {"acme": VENDORS["acme"] | {"labelling_page": True}, "bolt": VENDORS["bolt"]}
SAME = {"Sec_Fetch_Site": "same-origin"}
ORIGINS = ["https://images.example", "http://127.0.0.1:9000"]


@pytest.fixture
def office(open_office: Open) -> Office:
    """A vendor API with a labelling page for `acme`, and some requests."""
    office = open_office(vendors=PAGE, api={"image_origins": ORIGINS})
    office.ask(20)
    return office


@pytest.fixture
def browser(office: Office) -> Caller:
    return office.caller(None)


def log_in(
    browser: Caller, token: str = TOKENS["acme"], *, annotator: str | None = None, **headers: str
) -> Told:
    body = {"token": token} | ({} if annotator is None else {"annotator": annotator})
    return browser.call("POST", "/label/login", body, **(SAME | headers))


def cookie_of(told: Told) -> str:
    """What the browser sends after a login."""
    assert told.status == 204
    return told.headers["set-cookie"].partition(";")[0]


def call(browser: Caller, cookie: str, method: str, path: str, body: Any = None, **headers: str) -> Told:
    return browser.call(method, path, body, **(SAME | {"Cookie": cookie} | headers))


def test_the_page_is_served_with_a_strict_policy_and_images_of_the_configured_origins(
    browser: Caller,
) -> None:
    told = browser.call("GET", "/label/")
    assert (told.status, told.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert told.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data: https://images.example http://127.0.0.1:9000; connect-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    )
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.headers["referrer-policy"] == "no-referrer"
    assert browser.call("GET", "/label").headers["location"] == "/label/"


def test_every_module_of_the_page_is_fetched_at_once(browser: Caller) -> None:
    page = browser.call("GET", "/label/").body
    named = set(re.findall(r'"/label/static/js/(\w+)\.js"', page))
    imported = {"main"}
    for name in named:
        told = browser.call("GET", f"/label/static/js/{name}.js")
        assert (told.status, told.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        imported |= set(re.findall(r'^(?:import .*|\} )from "\./(\w+)\.js";$', told.body, re.MULTILINE))
    assert named == imported


@pytest.mark.parametrize("path", ["/label/static/../page.py", "/label/static/vendor/d3.min.js", "/label/x"])
def test_nothing_else_is_served(browser: Caller, path: str) -> None:
    assert browser.call("GET", path).status in {401, 404}


def test_without_a_vendor_that_uses_it_there_is_no_page(open_office: Open) -> None:
    browser = open_office().caller(None)
    assert browser.call("GET", "/label/").status == 401
    assert log_in(browser).status == 401


def test_a_script_cannot_read_the_cookie_and_other_sites_cannot_send_it(browser: Caller) -> None:
    cookie = log_in(browser).headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert cookie.endswith("; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200")
    assert TOKENS["acme"] not in cookie


def test_a_session_makes_the_calls_of_its_vendor(browser: Caller) -> None:
    cookie = cookie_of(log_in(browser, annotator="desk-7"))
    told = call(browser, cookie, "GET", "/label/session")
    assert told.body.pop("id")
    assert told.body == {
        "vendor": "acme",
        "annotator": "desk-7",
        "lease_seconds": 300.0,
        "most_claims": 100,
        "image_origins": ORIGINS,
    }
    assert call(browser, cookie, "GET", f"{V1}/models").body["models"][0]["model"] == "m"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
def test_what_another_page_sends_with_the_cookie_is_refused(browser: Caller, site: str | None) -> None:
    cookie = cookie_of(log_in(browser))
    headers = {"Cookie": cookie} | ({} if site is None else {"Sec_Fetch_Site": site})
    assert browser.call("GET", f"{V1}/claims", **headers).problem == "unauthorized"
    assert browser.call("POST", f"{V1}/claims", {}, **headers).problem == "unauthorized"
    assert browser.call("GET", "/label/session", **headers).status == 204
    assert browser.call("POST", "/label/logout", **headers).problem == "not-found"
    assert log_in(browser, Sec_Fetch_Site=site or "").problem == "not-found"


def test_an_answer_bears_the_name_that_was_given_at_login(office: Office, browser: Caller) -> None:
    cookie = cookie_of(log_in(browser, annotator="desk-7"))
    (claim,) = call(browser, cookie, "POST", f"{V1}/claims", {"annotator": "else"}).claims
    path = f"{V1}/models/m/requests/{claim['request_id']}"
    answer = {"claim_id": claim["claim_id"], "true_class": "dog", "annotator": "somebody-else"}
    assert call(browser, cookie, "POST", f"{path}/answer", answer).status == 202
    correction = {"item_id": claim["request"]["item_id"], "true_class": "owl"}
    assert call(browser, cookie, "POST", f"{path}/correction", correction).status == 202
    assert [label["annotator"] for label in office.read_labels(2)] == ["desk-7", "desk-7"]


def test_an_answer_of_a_session_without_a_name_bears_none(office: Office, browser: Caller) -> None:
    cookie = cookie_of(log_in(browser))
    (claim,) = call(browser, cookie, "POST", f"{V1}/claims", {"annotator": "else"}).claims
    path = f"{V1}/models/m/requests/{claim['request_id']}"
    answer = {"claim_id": claim["claim_id"], "true_class": "dog", "annotator": "somebody-else"}
    assert call(browser, cookie, "POST", f"{path}/answer", answer).status == 202
    (label,) = office.read_labels(1)
    assert "annotator" not in label


def test_a_call_of_another_session_than_the_cookies_is_refused(browser: Caller) -> None:
    cookies = [cookie_of(log_in(browser, annotator=name)) for name in ("ana", "ben")]
    ana, ben = (call(browser, cookie, "GET", "/label/session").body["id"] for cookie in cookies)
    headers = {"Cookie": cookies[1], **SAME}
    assert browser.call("GET", f"{V1}/claims", Credence_Session=ben, **headers).status == 200
    told = browser.call("GET", f"{V1}/claims", Credence_Session=ana, **headers)
    assert told.problem == "unauthorized"


def test_a_session_lists_its_own_claims_and_a_token_lists_all(office: Office, browser: Caller) -> None:
    ana, ben = (cookie_of(log_in(browser, annotator=name)) for name in ("ana", "ben"))
    held = {}
    for cookie in (ana, ben):
        claims = call(browser, cookie, "POST", f"{V1}/claims", {"most": 2}).claims
        held[cookie] = {claim["request_id"] for claim in claims}
        listed = call(browser, cookie, "GET", f"{V1}/claims").claims
        assert {claim["request_id"] for claim in listed} == held[cookie]
    assert not held[ana] & held[ben]
    assert len(office.caller("acme").get("/claims").claims) == 4
    again = cookie_of(log_in(browser, annotator="ana"))
    assert call(browser, again, "GET", f"{V1}/claims").claims == [], "another browser of the same person"


def test_a_repeated_claim_of_a_session_gives_what_it_holds(browser: Caller) -> None:
    cookie = cookie_of(log_in(browser))
    key = {"Idempotency_Key": "k"}
    first = call(browser, cookie, "POST", f"{V1}/claims", {"most": 2}, **key).claims
    assert call(browser, cookie, "POST", f"{V1}/claims", {"most": 2}, **key).claims == first


def test_a_token_is_not_mixed_up_with_a_session(office: Office, browser: Caller) -> None:
    cookie = cookie_of(log_in(browser))
    call(browser, cookie, "POST", f"{V1}/claims", {})
    acme = office.caller("acme")
    assert len(acme.call("GET", f"{V1}/claims", Cookie=cookie, **SAME).claims) == 1
    assert acme.call("GET", "/label/session", **SAME).status == 204


def test_a_session_ends(office: Office, browser: Caller) -> None:
    cookie = cookie_of(log_in(browser))
    office.clock.now += 43_199
    assert call(browser, cookie, "GET", f"{V1}/models").status == 200
    office.clock.now += 1
    assert call(browser, cookie, "GET", f"{V1}/models").problem == "unauthorized"


def test_a_logout_removes_the_cookie(browser: Caller) -> None:
    told = browser.call("POST", "/label/logout", **SAME)
    assert told.status == 204
    assert told.headers["set-cookie"].startswith(f"{COOKIE}=; ")
    assert "Max-Age=0" in told.headers["set-cookie"]


def sessions(key: str, *tokens: str) -> Sessions:
    return Sessions({"acme": [key.encode()]}, {"acme": [sha256(token) for token in tokens]}, 60.0, Clock())


def forged(key: str, *, vendor: str = "acme", token: str = TOKENS["acme"]) -> str:
    """The cookie of a session that was signed with another key, or names another vendor."""
    made = Sessions({vendor: [key.encode()]}, {}, 60.0, Clock())
    return made.cookie(made.begin(vendor, sha256(token), "")).partition(";")[0]


def test_nobody_without_a_key_can_make_a_session(browser: Caller) -> None:
    def status(cookie: str) -> int:
        return call(browser, cookie, "GET", f"{V1}/models").status

    assert status(forged(LABEL_KEYS["acme"])) == 200
    assert status(forged("x" * 32)) == 401
    assert status(forged(LABEL_KEYS["acme"], vendor="bolt", token=TOKENS["bolt"])) == 401
    assert status(forged(LABEL_KEYS["bolt"], vendor="bolt", token=TOKENS["bolt"])) == 401, "uses no page"
    assert status(forged(LABEL_KEYS["acme"], token="a-token-that-was-removed")) == 401
    genuine = forged(LABEL_KEYS["acme"])
    assert status(genuine[:-2]) == 401
    assert status(genuine.replace("=", "=A", 1)) == 401


@pytest.mark.parametrize("value", ["", ".", "a.b.c", "\xe9", "." * 9_000, "W10.", "bnVsbA.AA"])
def test_a_cookie_of_another_form_is_no_session(browser: Caller, value: str) -> None:
    assert call(browser, f"{COOKIE}={value}", "GET", f"{V1}/models").problem == "unauthorized"


def test_a_session_survives_the_change_of_label_keys(open_office: Open) -> None:
    keys = ["n" * 32, LABEL_KEYS["acme"]]
    browser = open_office(vendors={"acme": PAGE["acme"] | {"label_keys": keys}}).caller(None)
    assert call(browser, forged(LABEL_KEYS["acme"]), "GET", f"{V1}/models").status == 200


def test_a_token_of_a_vendor_without_the_page_is_refused(browser: Caller) -> None:
    assert log_in(browser, TOKENS["bolt"]).problem == "not-found"


def test_many_wrong_tokens_are_slowed_down_and_right_ones_are_not(office: Office, browser: Caller) -> None:
    problems = [log_in(browser, "wrong").problem for _ in range(14)]
    assert problems[:10] == ["unauthorized"] * 10
    assert problems[-1] == "too-many-logins"
    assert log_in(browser).status == 204
    assert office.sample("credence_vendor_api_logins_refused_total") == 14


def test_who_opens_the_page_has_tried_no_login(office: Office, browser: Caller) -> None:
    for _ in range(20):
        assert browser.call("GET", "/label/session", **SAME).status == 204
    assert office.sample("credence_vendor_api_logins_refused_total") == 0


def test_calls_of_a_session_count_as_its_vendors(open_office: Open) -> None:
    browser = open_office(vendors=PAGE, api={"requests_per_second": 0.01, "burst": 3}).caller(None)
    cookie = cookie_of(log_in(browser))
    told = [call(browser, cookie, "GET", f"{V1}/models").status for _ in range(4)]
    assert told == [200, 200, 200, 429]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"token": ""}', b'{"token": 1}', b'{"token": "t", "x": 1}']
)
def test_a_login_of_another_form_is_refused(browser: Caller, body: bytes) -> None:
    told = browser.call("POST", "/label/login", body, **SAME)
    assert (told.status, told.problem) == (422, "invalid")


def test_a_long_body_is_not_read_before_the_login(browser: Caller) -> None:
    assert log_in(browser, "x" * 5_000).problem == "too-large"
    form = browser.call("POST", "/label/login", b"token=x", Content_Type="text/plain", **SAME)
    assert form.problem == "unsupported-media-type"


def test_whoever_labels_items_with_others_needs_a_name(open_office: Open) -> None:
    office = open_office(vendors=PAGE, model={"labels_per_item": {"least": 2, "most": 2}})
    browser = office.caller(None)
    assert log_in(browser).problem == "annotator-needed"
    assert log_in(browser, annotator="  ").problem == "annotator-needed"
    assert log_in(browser, annotator="ana").status == 204
    service, office.service = office.service, None
    assert log_in(browser).problem == "unavailable"
    office.service = service
