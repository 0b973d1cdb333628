"""Half-lives and windows follow from how soon a change is to be found."""

from __future__ import annotations

from typing import Any

import pytest

from service.config.model import ModelSettings


def model(**keys: Any) -> ModelSettings:
    return ModelSettings.model_validate({"classes": ["a", "b"], **keys})


def times(settings: ModelSettings) -> tuple[float | None, float | None, float]:
    return settings.traffic_half_life_days, settings.draw_half_life_hours, settings.drift.window_hours


def test_the_default_is_a_week() -> None:
    assert times(model()) == times(model(find_within_days=7)) == (7.0, 24.0, 24.0)


@pytest.mark.parametrize(
    ("days", "draws", "window"), [(1, 24 / 7, 24.0), (30, 720 / 7, 96.0), (0.01, 0.24 / 7, 0.24 / 7)]
)
def test_a_window_of_a_day_or_more_has_whole_days(days: float, draws: float, window: float) -> None:
    assert times(model(find_within_days=days)) == (days, pytest.approx(draws), pytest.approx(window))


def test_a_key_that_is_given_wins() -> None:
    given = model(
        find_within_days=30, draw_half_life_hours=None, drift={"window_hours": 5, "label_share": 0.3}
    )
    assert times(given) == (30.0, None, 5.0)
    assert given.drift.label_share == 0.3


@pytest.mark.parametrize("days", [0, -1, 5_000, "soon", None])
def test_what_is_no_number_of_days_is_refused_at_its_key(days: Any) -> None:
    with pytest.raises(ValueError, match="find_within_days"):
        model(find_within_days=days)
