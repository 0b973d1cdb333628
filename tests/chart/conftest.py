"""Helm, as `.ci/chart.sh` has built it: its path stands in HELM."""

from __future__ import annotations

import os

import pytest
from rendering import Chart


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(scope="session")
def chart() -> Chart:
    """Renders the chart."""
    helm = os.environ.get("HELM")
    if not helm:
        message = "HELM names no helm; .ci/chart.sh builds one and runs these tests"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return Chart(helm)
