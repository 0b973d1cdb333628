"""How wide the interval of a model's accuracy is, as the people who label may know it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from service.domain.groupings import ALL
from service.monitoring.snapshot import ModelSnapshot

LEAST_LABELS = 10
"""Labels before the first width that is shown, and between two: the effect of one would reveal what the model
predicted."""


@dataclass(frozen=True)
class _Shown:
    width: float
    labels: int
    next_after: int


class ShownWidths:
    """Widths of the 95% intervals of models' accuracy, which change only after many labels.

    A label that contradicts the model widens the interval, or narrows it less, and the label of a gold item
    changes nothing. So that nobody can tell either of a single label, a width stays until at least
    `LEAST_LABELS` labels were added or removed. The exact number is random: otherwise the moment of the
    change would show how many gold items there were.
    """

    def __init__(self, board: Mapping[str, ModelSnapshot]) -> None:
        self._board = board
        self._shown: dict[str, _Shown] = {}

    def width(self, model: str) -> float | None:
        """Upper minus lower end of the interval, to 0.001; None until there are enough labels."""
        snapshot = self._board.get(model)
        everything = None if snapshot is None else snapshot.groupings.get(ALL)
        shown = self._shown.get(model)
        if snapshot is None or everything is None:
            return None if shown is None else shown.width
        width = float(everything.accuracy.upper[0] - everything.accuracy.lower[0])
        labels, step = (0, LEAST_LABELS) if shown is None else (shown.labels, shown.next_after)
        is_due = abs(snapshot.outcomes - labels) >= step
        if is_due and math.isfinite(width):
            step = LEAST_LABELS + secrets.randbelow(LEAST_LABELS)
            shown = self._shown[model] = _Shown(round(width, 3), snapshot.outcomes, step)
        return None if shown is None else shown.width
