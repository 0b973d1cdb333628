"""What a file of recorded predictions holds, and the checks that make it usable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from service.domain.arrays import Flags, Floats, Ints
from service.domain.errors import RecordingError

_OUTSIDE = 1e-4
"""Rounding carries published probabilities this far below 0 or above 1; logits and percentages go farther."""

_SUM_TOLERANCE = 1e-2
"""Rounding moves the sum of a row by up to half a unit of the last digit per class: four decimals of 200
classes by 0.01, six decimals of 20,000 as much, float16 and float32 by less. A column that was forgotten, or
scores that were never normalised, are off by more in some row."""


@dataclass(frozen=True)
class Columns:
    """A file as it was read, unchecked."""

    source: object
    probabilities: npt.NDArray[Any]  # should be [N, K]
    labels: npt.NDArray[Any]  # true classes; should be [N]
    predicted: npt.NDArray[Any] | None = None  # predicted classes, where the file has its own; should be [N]
    decision_values: npt.NDArray[Any] | None = None  # of two classes, where they were read; should be [N]
    attribute: npt.NDArray[Any] | None = None  # values of the attribute that was asked for; should be [N]
    lines: Sequence[int] | None = None  # in a text, the number of the line of every row [N]; else None

    def checked(self) -> tuple[Floats, Ints, Ints | None, Floats | None]:
        """Probabilities [N, K] within 0 and 1, labels, predicted classes and decision values [N].

        The last two are None where there are none.

        Raises:
            RecordingError: something in the file cannot be used.
        """
        self._check_shapes()
        probabilities = self._checked_probabilities()
        classes = probabilities.shape[1]
        labels = self._checked_classes("labels", self.labels, classes)
        predicted = self.predicted
        return (
            probabilities,
            labels,
            None if predicted is None else self._checked_classes("predicted", predicted, classes),
            None if self.decision_values is None else self._checked_margins(self.decision_values),
        )

    def _check_shapes(self) -> None:
        shape = self.probabilities.shape
        if len(shape) != 2:  # noqa: PLR2004 - [N, K]
            self._refuse(
                f"probabilities must be [N, K], a row per item and a column per class, but have the shape "
                f"{list(shape)}"
            )
        rows, classes = shape
        if rows == 0:
            self._refuse("there are no rows; record at least one prediction")
        if classes < 2:  # noqa: PLR2004 - a classifier chooses
            self._refuse(
                f"there are probabilities of {classes} class(es), but at least 2 are needed; "
                "for a binary classifier give those of both classes"
            )
        for name, column, what in (
            ("labels", self.labels, "a class for every row of probabilities"),
            ("predicted", self.predicted, "a class for every row of probabilities"),
            ("decision_values", self.decision_values, "one of every item"),
            ("attribute", self.attribute, "a value of every item"),
        ):
            if column is not None and column.shape != (rows,):
                self._refuse(f"{name} must be [{rows}], {what}, but have the shape {list(column.shape)}")

    def _checked_probabilities(self) -> Floats:
        self._check_kind("probabilities", self.probabilities)
        probabilities = self.probabilities.astype(np.float64, copy=False)
        # Extremes of rows carry any NaN along, and take no memory beside a table that may be large.
        lowest, highest = probabilities.min(axis=1), probabilities.max(axis=1)
        self._refuse_any(
            ~(np.isfinite(lowest) & np.isfinite(highest)),
            "probabilities hold a NaN or an infinity; leave the row out, or fix what wrote it",
        )
        outside = (lowest < -_OUTSIDE) | (highest > 1 + _OUTSIDE)
        self._refuse_any(
            outside,
            f"a probability is not within 0 and 1 (all go from {lowest.min():g} to {highest.max():g}); "
            "record probabilities, not logits, margins or percentages",
        )
        sums = probabilities.sum(axis=1)
        off = np.abs(sums - 1) > _SUM_TOLERANCE
        self._refuse_any(
            off,
            f"the probabilities sum to {sums[off.argmax()]:g}, not to 1 within {_SUM_TOLERANCE:g}; record "
            "those of all classes, normalised and with more decimals",
        )
        if lowest.min() < 0 or highest.max() > 1:
            return np.clip(probabilities, 0.0, 1.0)
        return probabilities

    def _checked_margins(self, values: npt.NDArray[Any]) -> Floats:
        self._check_kind("decision_values", values)
        self._refuse_any(
            ~np.isfinite(values),
            "decision_values hold a NaN or an infinity; leave the row out, or fix what wrote it",
        )
        return values.astype(np.float64)

    def _checked_classes(self, name: str, column: npt.NDArray[Any], classes: int) -> Ints:
        self._check_kind(name, column)
        self._refuse_any(
            ~np.isfinite(column), f"{name} hold a NaN, an infinity or nothing; leave the row out"
        )
        self._refuse_any(
            column != np.floor(column),
            f"{name} must be whole numbers, the classes' places 0 to {classes - 1}",
        )
        lowest, highest = int(column.min()), int(column.max())
        hint = (
            "they seem to be counted from 1; subtract 1"
            if (lowest, highest) == (1, classes)
            else "give the place of the class among the columns of probabilities"
        )
        self._refuse_any(
            (column < 0) | (column >= classes),
            f"{name} must be within 0 and {classes - 1}, but go from {lowest} to {highest}; {hint}",
        )
        return column.astype(np.int64, copy=False)

    def _check_kind(self, name: str, column: npt.NDArray[Any]) -> None:
        if column.dtype.kind not in "fiub":
            self._refuse(f"{name} are not numbers (their type is {column.dtype}); save them as numbers")

    def _refuse_any(self, wrong: Flags, problem: str) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            place = f"row {row} (counted from 0)" if self.lines is None else f"line {self.lines[row]}"
            self._refuse(f"{place}: {problem}")

    def _refuse(self, problem: str) -> NoReturn:
        raise RecordingError(self.source, problem)


def no_attribute(attribute: str, kind: str, names: Sequence[str]) -> str:
    """What is wrong where a file lacks an attribute, and what to do."""
    return f"there is no {kind} '{attribute}'; choose one of {', '.join(names)}, or record it"
