"""Numbers as a panel writes them: unit, decimals, words for values, and the colour of the threshold."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from deploy.grafana.preview.source import Panel

_LARGE = ((1e12, " Tri"), (1e9, " Bil"), (1e6, " Mil"), (1e3, " K"))
_PER = {"count:/s": "/s", "count:/h": "/h"}
_TIMES = ((31_536_000, "years"), (86_400, "days"), (3600, "hours"), (60, "mins"), (1, "s"))


class Field:
    """How the values of one column or series are written, by defaults and overrides of its panel."""

    def __init__(self, panel: Panel, name: str) -> None:
        config: dict[str, Any] = dict(panel["fieldConfig"]["defaults"])
        for override in panel["fieldConfig"]["overrides"]:
            if override["matcher"]["options"] == name:
                config |= {one["id"]: one["value"] for one in override["properties"]}
        self._config = config
        self.width: int | None = config.get("custom.width")

    def text(self, value: float | str | None, now: float) -> str:
        """The value as it is shown; `now` is for times that are written as how long ago they are."""
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        for mapping in self._config.get("mappings", ()):
            kind, options = mapping["type"], mapping["options"]
            is_in = kind == "range" and isinstance(value, float) and options["from"] <= value <= options["to"]
            if is_in or (kind == "special" and missing):
                return str(options["result"]["text"])
            if kind == "value" and isinstance(value, float) and f"{value:.0f}" in options:
                return str(options[f"{value:.0f}"]["text"])
        if missing:
            return str(self._config.get("noValue", ""))
        return value if isinstance(value, str) else self._number(float(value or 0), now)

    @property
    def is_coloured(self) -> bool:
        """Whether a cell of a table has a colour."""
        return "custom.cellOptions" in self._config

    def colour(self, value: float | str | None) -> str:
        """The colour of a value."""
        colour = self._config.get("color", {})
        if colour.get("mode") == "fixed":
            return str(colour["fixedColor"])
        found = ""
        for step in self._config["thresholds"]["steps"]:
            if step["value"] is None or (isinstance(value, float) and value >= step["value"]):
                found = step["color"]
        return str(found)

    def _number(self, value: float, now: float) -> str:
        unit, decimals = self._config.get("unit", "none"), self._config.get("decimals")
        word = _PER.get(unit, "")
        if unit == "dateTimeAsLocal":
            return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
        if unit == "percentunit":
            value, word = 100 * value, "%"
        elif unit in ("s", "dateTimeFromNow"):
            value, end = (value, "") if unit == "s" else (now - value / 1000, " ago")
            size, word = next((one for one in _TIMES if abs(value) >= one[0]), (1, "s"))
            value, word = value / size, f" {word}{end}"
        elif unit == "short" or word:
            large, name = next((one for one in _LARGE if abs(value) >= one[0]), (1.0, ""))
            value, word = value / large, name + word
        separator = "," if unit == "locale" else ""
        return f"{value:{separator}.{decimals}f}{word}" if decimals is not None else f"{value:.3g}{word}"
