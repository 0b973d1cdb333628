"""A recording: what a classifier predicted of a pool of items, and what they truly were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Floats, Ints
from service.domain.cells import MISSING
from service.domain.errors import RecordingError
from service.replay.archives import read_npz
from service.replay.columns import Columns
from service.replay.readers import read_parquet, read_text

_READERS: dict[str, Callable[..., Columns]] = {
    ".npz": read_npz,
    ".csv": read_text,
    ".txt": read_text,
    ".parquet": read_parquet,
}


@dataclass(frozen=True)
class Recording:
    """Predictions of one classifier, with the true classes."""

    name: str  # of the classifier; the file's name without its suffix
    probabilities: Floats  # within 0 and 1 [N, K]
    labels: Ints  # true class of every item, 0 to K - 1 [N]
    own_predicted: Ints | None = None  # predicted classes [N], if not those of the highest probability
    decision_values: Floats | None = None  # margins of the second of two classes [N], if read
    values: npt.NDArray[np.str_] | None = None  # of one attribute [N], if read

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


def load_recording(path: Path, *, decision_values: bool = False, attribute: str | None = None) -> Recording:
    """Read a recording in the format that the file's suffix names, with decision values if that is wished.

    - `.npz`: arrays `probabilities` [N, K] and `labels` [N], and optionally `predicted` [N] and
      `decision_values` [N].
    - `.csv` or `.txt`: rows of the true class and K probabilities, separated by commas, spaces or tabs.
    - `.parquet`: a column `label`, `labels` or `true_class`; either a column `probabilities` of lists, or
      columns `score_0` to `score_K-1`; and optionally `predicted`.

    The values of an attribute are read from the array or column of its name; a text needs a header for that.

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
    if read is read_npz and decision_values:
        read = partial(read_npz, decision_values=True)
    try:
        columns = read(path, attribute=attribute)
    except OSError as error:
        raise RecordingError(path, f"it cannot be read ({type(error).__name__}); check the file") from error
    checked, values = columns.checked(), columns.attribute
    return Recording(path.stem, *checked, values=None if values is None else _names(values))


def _names(values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Attribute values as names of groups; an empty one is missing, as in a prediction without it."""
    missing = np.array([value is None or value == "" or value != value for value in values.tolist()])  # noqa: PLR0124 - NaN
    return np.where(missing, MISSING, values.astype(np.str_)) if missing.any() else values.astype(np.str_)


def same_items(recordings: Sequence[Recording]) -> None:
    """Refuse recordings that cannot be of the same items in the same order.

    Raises:
        RecordingError: they are not.
    """
    first = recordings[0]
    for other in recordings[1:]:
        for what, one, its in (("items", first.size, other.size), ("classes", first.classes, other.classes)):
            if one != its:
                raise RecordingError(
                    other.name,
                    f"it has {its} {what}, {first.name} has {one}; members are recorded on the same items",
                )
        differing = np.flatnonzero(first.labels != other.labels)
        if len(differing):
            row = int(differing[0])
            raise RecordingError(
                other.name,
                f"its labels are not those of {first.name}: row {row} (counted from 0) is of class "
                f"{other.labels[row]} here and {first.labels[row]} there; record the same items in the same "
                "order",
            )
