"""Runbooks: what to do when an alert fires, as pages."""

from __future__ import annotations

import html
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Credence</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/style.css">
</head>
<body class="document">
<header class="bar"><a class="brand" href="/">
<img src="/static/icon.svg" alt="" width="24" height="24">Credence</a>
<a href="/docs/runbooks/">Runbooks</a></header>
<main class="prose">
{body}
</main>
</body>
</html>
"""


def load_runbooks() -> dict[str, str]:
    """The runbooks' Markdown by name of the alert; empty where none are installed."""
    folder = _folder()
    if not folder.is_dir():
        return {}
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".md")
    }


def _folder() -> Traversable:
    # A wheel brings the runbooks inside the package; a checkout has them among the other documents.
    packaged = files("service.serving.web") / "runbooks"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "docs" / "runbooks"


def runbook_page(name: str, runbooks: Mapping[str, str]) -> str:
    """One runbook as HTML."""
    return _PAGE.format(title=html.escape(name), body=_rendered(runbooks[name], runbooks))


def runbook_index(runbooks: Mapping[str, str]) -> str:
    """The list of all runbooks as HTML; the text of `README.md` where there is one."""
    if "README" in runbooks:
        return _PAGE.format(title="Runbooks", body=_rendered(runbooks["README"], runbooks))
    items = "\n".join(
        f'<li><a href="/docs/runbooks/{quote(name, safe="")}">{html.escape(name)}</a></li>'
        for name in runbooks
    )
    return _PAGE.format(title="Runbooks", body=f"<h1>Runbooks</h1>\n<ul>\n{items}\n</ul>")


def _rendered(markdown: str, runbooks: Mapping[str, str]) -> str:
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = renderer.parse(markdown)
    for token in tokens:
        for part in (token, *(token.children or ())):
            _adapt(part, runbooks)
    rendered: str = renderer.renderer.render(tokens, renderer.options, {})
    return rendered


def _adapt(token: Token, runbooks: Mapping[str, str]) -> None:
    # Columns are aligned by a style attribute, which the page's content security policy forbids.
    alignment = token.attrs.pop("style", None)
    if alignment is not None:
        token.attrs["class"] = str(alignment).replace("text-align:", "align-")
    if token.type != "link_open":
        return
    target, _, fragment = str(token.attrs.get("href", "")).partition("#")
    name = target.removeprefix("./").removesuffix(".md")
    if target.endswith(".md") and name in runbooks:
        token.attrs["href"] = f"/docs/runbooks/{quote(name, safe='')}" + (f"#{fragment}" if fragment else "")
    elif "://" not in target and not target.startswith("/") and target:
        # Other files of the repository are not served; their names stay readable.
        del token.attrs["href"]
