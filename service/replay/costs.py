"""Cost matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.domain.errors import RecordingError


def load_costs(path: Path, classes: int) -> Floats:
    """Costs [K, K] by true class, in rows, and predicted class, in columns, of any unit.

    Args:
        path: text: K lines of K numbers, separated by commas or blanks.
        classes: how many classes K there are.

    Raises:
        RecordingError: the file cannot be used.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
        matrix = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    except OSError as error:
        raise RecordingError(str(path), f"it cannot be read ({error.strerror}); name another file") from error
    except ValueError as error:
        raise RecordingError(
            str(path), "it is not a square of numbers; write a line of costs for every true class"
        ) from error
    if matrix.shape != (classes, classes):
        raise RecordingError(
            str(path), f"it has the shape {matrix.shape}; {classes} classes need {classes} by {classes} costs"
        )
    if not np.isfinite(matrix).all():
        raise RecordingError(str(path), "a cost is not a finite number; correct it")
    return matrix
