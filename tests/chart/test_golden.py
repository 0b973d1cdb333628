"""The default render, word by word, so that a change of it is seen in review."""

from __future__ import annotations

from pathlib import Path

import pytest
from rendering import Chart, case

GOLDEN = Path(__file__).parent / "golden/default.yaml"


def test_the_default_render_is_the_golden_file(chart: Chart, request: pytest.FixtureRequest) -> None:
    rendered = chart.text(case("default"))
    if request.config.getoption("--update-golden"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(rendered)
    assert _written(rendered) == _written(GOLDEN.read_text()), (
        "HELM=… pytest tests/chart/test_golden.py --update-golden writes it anew"
    )


def _written(text: str) -> list[str]:
    """Its lines; versions of Helm differ in the empty ones between objects."""
    return [line for line in text.splitlines() if line.strip()]
