"""`python -m benchmarks.studies.paper`: the tables and figures that it makes of a recording."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_examples import recording

from benchmarks.studies.paper import paper_tables, parser
from benchmarks.studies.running import run_study

EXAMPLE = recording([90, 80, 70, 60])


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "model.npz"
    np.savez(path, **{"probabilities": EXAMPLE.probabilities, "labels": EXAMPLE.labels} | changes)
    return path


def documents(*words: object) -> list[dict[str, Any]]:
    with redirect_stdout(io.StringIO()) as printed:
        run_study(paper_tables, parser().parse_args([*map(str, words), "--json"]))
    found: list[dict[str, Any]] = json.loads(printed.getvalue(), parse_constant=pytest.fail)
    return found


@pytest.fixture(scope="module")
def of_few_items(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[str]]:
    """The tables of thirty items, and the names of their figures."""
    folder = tmp_path_factory.mktemp("paper")
    path = saved(folder, probabilities=EXAMPLE.probabilities[:30], labels=EXAMPLE.labels[:30])
    plots = ["--plots", folder / "figures"] if find_spec("matplotlib") else []
    tables = documents(path, "--runs", 1, *plots)
    return tables, [file.stem.removeprefix(f"{path.stem}-") for file in folder.glob("figures/*")]


PAPER = [
    "Table 3",
    "Table 4",
    "Table 5",
    "Table 6",
    "Table 7",
    "Supplement, Table 1",
    "Supplement, Table 2",
    "Supplement, Table 3",
    "Supplement, Table 4",
]


def test_the_papers_tables_are_made(tmp_path: Path) -> None:
    # A quarter of the items, of all classes: the tables are the same.
    path = saved(tmp_path, probabilities=EXAMPLE.probabilities[::4], labels=EXAMPLE.labels[::4])
    tables = documents(path, "--runs", 2)
    titles = [table["title"] for table in tables]
    for name in PAPER:
        assert any(re.match(rf"{name}\b", title) for title in titles), name
    assert all(re.match("|".join(PAPER), title) for title in titles)
    assert all(table["rows"] for table in tables)


def test_of_few_items_the_papers_tables_have_no_column_twice(
    of_few_items: tuple[list[dict[str, Any]], list[str]],
) -> None:
    tables, _ = of_few_items
    assert list(tables[2]["rows"][0]) == ["method \\ labels", "20", "30"]


def test_every_table_of_the_paper_has_a_figure_of_its_own(
    of_few_items: tuple[list[dict[str, Any]], list[str]],
) -> None:
    pytest.importorskip("matplotlib")
    tables, names = of_few_items
    assert sum(name.startswith(("table-", "supplement-")) for name in names) == len(tables)
    assert {"accuracy-against-calibration", "ranks", "reliability", "difference"} <= set(names)
