"""Colours, thresholds and sizes that all panels share.

The colours are those of Okabe and Ito, which people with any kind of colour blindness tell apart; blue to
vermillion stands for good to bad, and no meaning is in a colour alone.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

BLUE = "#0072B2"
SKY = "#56B4E9"
ORANGE = "#E69F00"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREEN = "#009E73"
GREY = "#8E8E8E"

RATIO = "percentunit"
SECONDS = "s"
TIME = "dateTimeAsLocal"
COUNT = "short"
PER_SECOND = "suffix: /s"
PER_HOUR = "suffix: /h"
PLAIN = "none"

PROBABLE = (0.0, 1.0)

Steps = tuple[tuple[float | None, str], ...]

NEUTRAL: Steps = ((None, BLUE),)
PROBABILITY: Steps = ((None, BLUE), (0.5, ORANGE), (0.95, VERMILLION))
ANY_IS_BAD: Steps = ((None, BLUE), (1, VERMILLION))
NONE_IS_BAD: Steps = ((None, VERMILLION), (1, BLUE))
SNAPSHOT_AGE: Steps = ((None, BLUE), (60, ORANGE), (300, VERMILLION))
LABEL_AGE: Steps = ((None, BLUE), (86_400, ORANGE), (604_800, VERMILLION))
FOLDING: Steps = ((None, BLUE), (0.05, ORANGE))


def thresholds(steps: Steps) -> build.ThresholdsConfig:
    """Colours by value, from the lowest up."""
    return (
        build.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def by_threshold() -> build.FieldColor:
    """The colour of the threshold that the value has reached."""
    return build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS)


def by_name() -> build.FieldColor:
    """A colour for each series, the same whenever it is shown."""
    return build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def fixed(colour: str) -> model.DynamicConfigValue:
    """An override: this colour."""
    return model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
