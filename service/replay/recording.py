"""A recording: what a classifier predicted of a pool of items, and what they truly were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Floats, Ints
from service.domain.errors import RecordingError
from service.replay.columns import Columns
from service.replay.parquet import read_parquet
from service.replay.plain import read_decision_values, read_npz, read_text

_READERS: dict[str, Callable[[Path], Columns]] = {
    ".npz": read_npz,
    ".csv": read_text,
    ".txt": read_text,
    ".parquet": read_parquet,
}


@dataclass(frozen=True)
class Recording:
    """Predictions of one classifier, with the true classes.

    Attributes:
        name: of the classifier; the file's name without its suffix.
        probabilities: within 0 and 1 [N, K].
        labels: true class of every item, 0 to K - 1 [N].
        own_predicted: predicted classes [N] where they are not those of the highest probability, as with an
            operating threshold; else None.
        decision_values: margins of the second of two classes [N], real numbers that grow with its
            probability; None where none were read.
    """

    name: str
    probabilities: Floats
    labels: Ints
    own_predicted: Ints | None = None
    decision_values: Floats | None = None

    @property
    def size(self) -> int:
        """Number of items N."""
        return len(self.probabilities)

    @property
    def classes(self) -> int:
        """Number of classes K."""
        classes: int = self.probabilities.shape[1]
        return classes

    @cached_property
    def predicted(self) -> Ints:
        """Predicted class of every item [N]; among equally probable ones the first."""
        if self.own_predicted is not None:
            return self.own_predicted
        predicted: Ints = self.probabilities.argmax(axis=1).astype(np.int64, copy=False)
        return predicted

    @cached_property
    def scores(self) -> Floats:
        """Probability of the predicted class [N]."""
        scores: Floats = self.probabilities[np.arange(self.size), self.predicted]
        return scores

    @cached_property
    def correct(self) -> Flags:
        """Whether the predicted class is the true one [N]."""
        correct: Flags = self.predicted == self.labels
        return correct


def load_recording(path: Path, *, decision_values: bool = False) -> Recording:
    """Read a recording in the format that the file's suffix names.

    - `.npz`: arrays `probabilities` [N, K] and `labels` [N], and optionally `predicted` [N] and
      `decision_values` [N].
    - `.csv` or `.txt`: rows of the true class and K probabilities, separated by commas, spaces or tabs.
    - `.parquet`: a column `label`, `labels` or `true_class`; either a column `probabilities` of lists, or
      columns `score_0` to `score_K-1`; and optionally `predicted`.

    Args:
        path: of the file.
        decision_values: whether to read them, if the file has any.

    Raises:
        RecordingError: the file cannot be used, and why.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise RecordingError(
            path, f"its format is not known; the suffix must be one of {', '.join(_READERS)}"
        )
    if not path.is_file():
        raise RecordingError(path, "there is no such file; check the path")
    values = None
    try:
        columns = read(path)
        if decision_values and read is read_npz:
            values = read_decision_values(path)
    except OSError as error:
        raise RecordingError(path, f"it cannot be read ({type(error).__name__}); check the file") from error
    probabilities, labels, predicted = columns.checked()
    margins = None if values is None else _checked_margins(path, values, len(labels))
    return Recording(path.stem, probabilities, labels, predicted, margins)


def _checked_margins(path: Path, values: npt.NDArray[Any], size: int) -> Floats:
    """Decision values [N] of two classes.

    Raises:
        RecordingError: they cannot be used.
    """
    if values.shape != (size,):
        raise RecordingError(
            path,
            f"decision_values must be [{size}], one of every item, but have the shape {list(values.shape)}",
        )
    if values.dtype.kind not in "fiu":
        raise RecordingError(
            path, f"decision_values are not numbers (their type is {values.dtype}); save them as numbers"
        )
    margins: Floats = values.astype(np.float64)
    if not np.isfinite(margins).all():
        row = int(np.isfinite(margins).argmin())
        raise RecordingError(
            path,
            f"row {row} (counted from 0): decision_values hold a NaN or an infinity; leave the row out, or "
            "mend what wrote it",
        )
    return margins
