"""Colours, thresholds and sizes that all panels share.

The colours are those of Okabe and Ito, which people with any kind of colour blindness tell apart; blue to
vermillion stands for good to bad, and no meaning is in a colour alone. What has no value is grey: Grafana
gives it the lowest colour, which must not be that of good.
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
AGO = "dateTimeFromNow"
COUNT = "short"
EXACT = "locale"
"""Of counts with a given number of decimals: Grafana would round 1,763 to "2 K"."""
PER_SECOND = "count:/s"
PER_HOUR = "count:/h"
PLAIN = "none"
TEXT = "string"
"""Of labels: a group called `000` would be the number 0."""

PROBABLE = (0.0, 1.0)

Steps = tuple[tuple[float | None, str], ...]

NEUTRAL: Steps = ((None, GREY), (0, BLUE))
PROBABILITY: Steps = ((None, GREY), (0, BLUE), (0.5, ORANGE), (0.95, VERMILLION))
ANY_IS_BAD: Steps = ((None, GREY), (0, BLUE), (1, VERMILLION))
ANY_IS_ODD: Steps = ((None, GREY), (0, BLUE), (1, ORANGE))
NONE_IS_BAD: Steps = ((None, GREY), (0, VERMILLION), (1, BLUE))
FLAG: Steps = ((None, GREY), (1, VERMILLION))
"""Of what is confirmed: that it is not is no good news, as something else may be."""
SNAPSHOT_AGE: Steps = ((None, GREY), (0, BLUE), (60, ORANGE), (300, VERMILLION))
LABEL_AGE: Steps = ((None, GREY), (0, BLUE), (86_400, ORANGE), (604_800, VERMILLION))
FOLDING: Steps = ((None, GREY), (0, BLUE), (0.05, ORANGE))

Words = tuple[tuple[float, str], ...]

ABSENT = 1_000_000_000
"""Seconds that stand for the age of what is not there, so that it has the colour of what is too old."""

NO_ESTIMATES: Words = ((ABSENT, "none"),)
YES_NO: Words = ((0, "no"), (1, "yes"))


def written(unit: str, decimals: int | None) -> str:
    """The unit by which a number is written out."""
    return EXACT if unit == COUNT and decimals is not None else unit


def thresholds(steps: Steps) -> build.ThresholdsConfig:
    """Colours by value, from the lowest up."""
    return (
        build.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def mappings(words: Words, missing: str = "", *, probability: bool = False) -> list[model.ValueMapping]:
    """Words for some values, for probabilities that would be rounded to 0 or 1, and for no value."""
    found: list[model.ValueMapping] = []
    if probability:
        for low, high, text in ((0.9995, 1.0, "over 99.9%"), (0.0, 0.0005, "under 0.1%")):
            bounds = model.DashboardRangeMapOptions(low, high, model.ValueMappingResult(text=text))
            found.append(model.RangeMap(options=bounds))
    if words:
        options = {f"{value:.0f}": model.ValueMappingResult(text=text) for value, text in words}
        found.append(model.ValueMap(options=options))
    if missing:
        options_of_none = model.DashboardSpecialValueMapOptions(
            match=model.SpecialValueMatch.NULL_AND_NAN, result=model.ValueMappingResult(text=missing)
        )
        found.append(model.SpecialValueMap(options=options_of_none))
    return found


def by_threshold() -> build.FieldColor:
    """The colour of the threshold that the value has reached."""
    return build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS)


def by_name() -> build.FieldColor:
    """A colour for each series, the same whenever it is shown."""
    return build.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def fixed(colour: str) -> model.DynamicConfigValue:
    """An override: this colour."""
    return model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
