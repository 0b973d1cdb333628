"""The status page's files and the runbooks, served over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from importlib.resources import files

import pytest
from starlette.applications import Starlette

from service.serving.web.pages import page_routes
from service.serving.web.runbooks import runbook_page
from service.serving.web.server import WebServer

Answer = tuple[int, Message, str]


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    """The page alone."""
    server = WebServer(Starlette(routes=page_routes()), name="page", host="127.0.0.1", port=0)
    yield server
    server.stop()


def get(server: WebServer, path: str, **headers: str) -> Answer:
    """Status, headers and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_the_page_is_served_with_a_strict_policy(server: WebServer) -> None:
    status, headers, body = get(server, "/")
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "<noscript>" in body


def test_every_file_that_the_page_names_is_served_with_its_type(server: WebServer) -> None:
    kinds = {
        "/static/style.css": "text/css",
        "/static/js/main.js": "text/javascript",
        "/static/vendor/d3.min.js": "text/javascript",
        "/static/icon.svg": "image/svg+xml",
    }
    body = get(server, "/")[2]
    for path, kind in kinds.items():
        assert path in body
        assert get(server, path)[1]["Content-Type"].startswith(kind)


def test_every_module_is_fetched_at_once_and_not_one_after_the_other(server: WebServer) -> None:
    body = get(server, "/")[2]
    for module in (files("service.serving.web") / "static" / "js").iterdir():
        assert f'"/static/js/{module.name}"' in body


def test_what_a_browser_has_already_is_not_sent_again(server: WebServer) -> None:
    tag = get(server, "/static/style.css")[1]["ETag"]
    status, headers, body = get(server, "/static/style.css", **{"If-None-Match": f'"other", W/{tag}'})
    assert (status, headers["ETag"], body) == (304, tag, "")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py",
        "/static/%2e%2e/pages.py",
        "/static/vendor/README.md",
        "/docs/runbooks/NoSuchAlert",
    ],
)
def test_nothing_else_is_served(server: WebServer, path: str) -> None:
    assert get(server, path)[0] == 404


def test_a_runbook_is_rendered_with_its_tables_and_without_styles_that_the_policy_forbids() -> None:
    page = runbook_page("CredenceX", {"CredenceX": "# It is low\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n"})
    assert "<h1>It is low</h1>" in page
    assert '<td class="align-right">2</td>' in page
    assert "style=" not in page.replace('rel="stylesheet"', "")


def test_html_in_a_runbook_is_text() -> None:
    assert "<script>alert" not in runbook_page("A", {"A": "<script>alert(1)</script>\n"})


def test_links_lead_to_other_runbooks_and_not_to_files_that_are_not_served() -> None:
    page = runbook_page("A", {"A": "[b](B.md#then), [c](../metrics.md), [d](https://example.org/)", "B": ""})
    assert '<a href="/docs/runbooks/B#then">b</a>' in page
    assert "<a>c</a>" in page
    assert '<a href="https://example.org/">d</a>' in page


@pytest.mark.parametrize("whose", ["Model", "Group"])
@pytest.mark.parametrize("what", ["AccuracyLow", "Miscalibrated"])
def test_what_the_page_links_to_as_a_runbook_is_one(server: WebServer, whose: str, what: str) -> None:
    assert get(server, f"/docs/runbooks/Credence{whose}{what}")[0] == 200


def test_the_index_of_runbooks_links_to_them(server: WebServer) -> None:
    assert '<a href="/docs/runbooks/CredenceModelAccuracyLow">' in get(server, "/docs/runbooks/")[2]
