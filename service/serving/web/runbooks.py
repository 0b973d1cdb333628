"""Runbooks: what to do when an alert fires, as pages."""

from __future__ import annotations

import html
from collections.abc import Mapping
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
    # A wheel brings the runbooks inside the package; a checkout has them among the other documents.
    packaged = Path(__file__).with_name("runbooks")
    folder = packaged if packaged.is_dir() else Path(__file__).parents[3] / "docs" / "runbooks"
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.md"))}


def runbook_page(name: str, runbooks: Mapping[str, str]) -> str:
    """One runbook as HTML; `README` is the list of all."""
    title = "Runbooks" if name == "README" else html.escape(name)
    return _PAGE.format(title=title, body=_rendered(runbooks[name], runbooks))


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
