"""Texts for people are in plain words, files are short, and every module is in a room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 300

REPLACED = {
    "anew": "again",
    "of late": "recent, now",
    r"(?:is|are|was|were) told(?! apart)": "is reported",
    "lest": "so that ... not",
    "thereby": "so",
    "whom": "who, or another sentence",
    r"mend(?:s|ed)?": "fix",
    "surely": "the probability, or nothing",
    r"rests? on": "uses",
    "believed": "estimated",
    r"(?:is|are) away": "is unreachable",
    "hangs on": "depends on",
    "(?<!`)suspicion": "drift score",
    "unless told": "default",
    "of former times": "former, earlier",
    "worth what": "calibrated",
    r"is needed with": "required with",
    r"asks nobody": "has no authentication",
    r"called positive": "predicted positive",
    r"likeliest": "most probable",
    r"stands? on": "uses",
    r"outranks": "overrides",
    r"how often one looks": "under continuous monitoring",
}
"""What nobody says to a colleague at a whiteboard, and what to write instead."""

PRIVATE_NAMES = {
    "told": "reported, exported",
    "lately": "recent",
    "at_hand": "available",
    "of_late": "recent",
    "anew": "again",
    "even_say": "weight",
    "what_remains": "weights",
    "unavailable_when_away": "translate_errors",
    "surely": "excess, probability",
    "relearned": "change_points",
    "suspicion": "drift_score",
    "meaningless": "rejected",
}
"""Names that describe what the field has a term for, and what to use instead."""

PHRASE = re.compile("|".join(rf"\b{said}\b" for said in REPLACED), re.IGNORECASE)

TEXTS = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile"),
    *("docs/*.md", "docs/runbooks/*.md"),
    *("service/serving/web/static/*.html", "service/serving/web/static/js/*.js"),
    *("service/serving/label_page/static/*.html", "service/serving/label_page/static/js/*.js"),
    *("deploy/prometheus/*.rules.yaml", "deploy/prometheus/credence.slo.yaml"),
    *("deploy/alertmanager/*", "deploy/compose/*.yaml", "deploy/compose.yaml"),
    *("helm/*.md", "helm/credence/templates/**/*.*"),
)
LITERALS = ("service/**/*.py", "consumers/**/*.py", "deploy/grafana/**/*.py", "helm/*.py")
"""Code with texts for people: help, errors, metrics, the API's descriptions, dashboards, generated pages."""

GENERATED = {"docs/metrics.md", "docs/rights.md"}
"""From literals, which are checked."""


def code() -> Iterator[Path]:
    return chain.from_iterable((ROOT / package).rglob("*.py") for package in ("service", "consumers"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def matching(patterns: tuple[str, ...]) -> dict[str, Path]:
    found = {named(path): path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    assert found
    return {name: path for name, path in found.items() if name not in GENERATED}


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Texts in code, with their lines; no docstrings, and no single words, which are names."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            for line, text in enumerate(node.value.splitlines(), start=node.lineno):
                if " " in text:
                    yield line, text


def names(source: str) -> Iterator[tuple[int, str]]:
    """Names that code defines, with their lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.arg():
                yield node.lineno, node.arg


def unplain() -> dict[str, list[str]]:
    """Places of phrases to replace, by file."""
    texts = {name: enumerate(path.read_text().splitlines(), 1) for name, path in matching(TEXTS).items()}
    texts |= {name: literals(path.read_text()) for name, path in matching(LITERALS).items()}
    found = {
        name: [f"{name}:{line}: {said[0]}" for line, text in lines for said in PHRASE.finditer(text)]
        for name, lines in texts.items()
    }
    return {name: places for name, places in found.items() if places}


def test_files_have_at_most_300_lines() -> None:
    assert {named(path) for path in code() if len(path.read_text().splitlines()) > MOST_LINES} == set()


def test_every_module_of_the_service_is_in_a_room() -> None:
    loose = {path.name for path in (ROOT / "service").glob("*.py")}
    assert loose <= {"__init__.py", "__main__.py"}


def test_texts_for_people_are_in_plain_words() -> None:
    assert [place for places in unplain().values() for place in places] == []


def test_names_in_code_are_terms_of_the_field() -> None:
    found = [
        f"{named(path)}:{line}: {name}"
        for path in code()
        for line, name in names(path.read_text())
        if name in PRIVATE_NAMES
    ]
    assert found == []


def test_names_are_those_that_code_defines() -> None:
    source = "class A:\n    told: int = 1\n\n\ndef f(lately):\n    anew = lately.told\n"
    assert [name for _, name in names(source) if name in PRIVATE_NAMES] == ["told", "lately", "anew"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Lists what is read anew", ["anew"]),
        ("Values that are told apart", []),
        ("Drift: the reference, and of late", ["of late"]),
        ("A recommended method, believed to be right", ["believed"]),
    ],
)
def test_phrases_are_whole_words(text: str, said: list[str]) -> None:
    assert PHRASE.findall(text) == said


def test_docstrings_and_names_are_no_texts() -> None:
    source = 'def f():\n    """Read anew."""\n    kind = "anew"\n    raise ValueError("it is read anew")\n'
    assert list(literals(source)) == [(4, "it is read anew")]
