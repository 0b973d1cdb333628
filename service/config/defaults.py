"""Defaults of settings that other programs use too: light, unlike the models of the settings."""

from __future__ import annotations

from typing import Final

RUN_LENGTH: Final = 500
"""Of `forgetting.run_length`."""

REFERENCE_PREDICTIONS: Final = 10_000
"""Of `drift.reference_predictions`."""
