"""Thresholds of alerts fit the model that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.config.loader import load_settings
from service.domain.errors import ConfigurationError

RELIABLE = "models: {animals: {classes: [cat, dog], alerts: {min_reliability: 0.9}"


def config_in(folder: Path, text: str) -> Path:
    path = folder / "credence.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_threshold_of_reliability_needs_labels_that_may_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"min_reliability.*needs labels that may be wrong"):
        load_settings(config_in(tmp_path, RELIABLE + "}}"), {})


@pytest.mark.parametrize("policy", ["most: 3", "reliability: 0.95"])
def test_a_threshold_of_reliability_is_allowed_where_people_may_err(tmp_path: Path, policy: str) -> None:
    path = config_in(tmp_path, f"{RELIABLE}, labels_per_item: {{{policy}}}}}}}")
    assert load_settings(path, {}).models["animals"].alerts.min_reliability == 0.9
