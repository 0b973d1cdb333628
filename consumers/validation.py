"""Validation of predictions against their model, many at a time.

Columns are checked at once. Predictions that fail there are checked one by one, by `PredictionChecks.check`,
which alone refuses a prediction, and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from struct import Struct

import msgspec
import numpy as np
from pydantic_core import from_json

from consumers.formats.columns import ModelColumns
from consumers.formats.native import ABSENT, WirePrediction, decode_attributes
from service.domain.arrays import Flags, Floats, Indices
from service.domain.errors import BadMessage
from service.domain.messages import PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE

_EMPTY_PAYLOADS = (b"", b"null")
_UNKNOWN = -1

_PLAIN_PAYLOAD_BYTES = 4_000
_PLAIN_PAYLOAD_PARTS = 100
"""A payload that is longer, or has more arrays and objects, may be JSON that few parsers accept."""


@dataclass(frozen=True)
class Checked:
    """Predictions of one model as columns [n], refused ones included.

    Attributes:
        predictions: as they were parsed.
        classes: index of the predicted class [n].
        scores: in [0, 1] [n].
        with_probabilities: indices of predictions that have class probabilities [m].
        probabilities: these, in [0, 1] [m, classes].
        refused: why predictions are refused, by index.
    """

    predictions: Sequence[WirePrediction]
    classes: Indices
    scores: Floats
    with_probabilities: Indices
    probabilities: Floats
    refused: dict[int, BadMessage]


class PredictionChecks:
    """Validates predictions of one model against its label set, in order, and the longest payload."""

    def __init__(self, classes: Sequence[str], *, payload_bytes: int) -> None:
        self._classes = len(classes)
        # Three times as fast as numpy, which inspects every number.
        self._pack = Struct(f"{len(classes)}d").pack
        self._class_index: dict[str | None, int] = {name: i for i, name in enumerate(classes)}
        self._payload_bytes = payload_bytes

    def check_all(self, predictions: Sequence[WirePrediction]) -> Checked:
        """Predictions as columns, and why some are refused."""
        names = [p.predicted_class for p in predictions]
        classes = np.fromiter(map(self._class_index.get, names, repeat(_UNKNOWN)), np.intp, len(names))
        scores = np.array([p.score for p in predictions], dtype=np.float64)
        rows, matrix, suspects = self._probabilities(predictions)
        unnamed = np.array([names[row] is None for row in rows.tolist()], dtype=np.bool_)
        longest = self._payload_bytes
        suspects += [
            row
            for row, p in enumerate(predictions)
            if p.votes is not None
            or (p.payload is not ABSENT and (p.payload_uri is not None or not _is_plain(p.payload, longest)))
        ]
        return self._check_columns(predictions, classes, scores, (rows, matrix, unnamed), suspects)

    def check_columns(self, columns: ModelColumns) -> Checked:
        """The same of predictions that are columns already."""
        names = columns.classes.names
        of_name = np.fromiter(map(self._class_index.get, names, repeat(_UNKNOWN)), np.intp, len(names))
        is_unnamed = np.fromiter([name is None for name in names], np.bool_, len(names))
        rows, matrix, suspects = np.empty(0, np.intp), np.empty((0, self._classes)), []
        if columns.probabilities is not None:
            if columns.probabilities.shape[1] == self._classes:
                rows, matrix = np.arange(len(columns)), columns.probabilities
            else:
                suspects = list(range(len(columns)))
        classes, unnamed = of_name[columns.classes.codes], is_unnamed[columns.classes.codes]
        spread = rows, matrix, unnamed[rows]
        return self._check_columns(columns, classes, columns.scores.copy(), spread, suspects)

    def _check_columns(
        self,
        predictions: Sequence[WirePrediction],
        classes: Indices,
        scores: Floats,
        spread: tuple[Indices, Floats, Flags],
        suspects: list[int],
    ) -> Checked:
        """Fill in what probabilities say, and refuse what does not fit the model.

        Args:
            predictions: of the model [n].
            classes: index of the predicted class, -1 where it is unknown or absent [n]; filled in.
            scores: NaN where there is none [n]; filled in.
            spread: indices of the predictions with as many probabilities as there are classes [m], these
                [m, classes], and which of them name no class [m].
            suspects: indices of other predictions that may be invalid.
        """
        rows, matrix, unnamed = spread
        probabilities, misfits = _fill_in(classes, scores, rows, matrix, unnamed)
        suspects = [*suspects, *misfits]
        is_valid = (classes != _UNKNOWN) & (scores >= -SCORE_TOLERANCE) & (scores <= 1 + SCORE_TOLERANCE)
        is_valid[suspects] = False
        refused: dict[int, BadMessage] = {}
        for row in np.flatnonzero(~is_valid).tolist():
            try:
                classes[row], scores[row] = self.check(predictions[row])
            except BadMessage as error:
                refused[row] = error
        return Checked(
            predictions=predictions,
            classes=classes,
            scores=scores.clip(0.0, 1.0),
            with_probabilities=rows,
            probabilities=probabilities,
            refused=refused,
        )

    def _probabilities(self, predictions: Sequence[WirePrediction]) -> tuple[Indices, Floats, list[int]]:
        """Class probabilities as a matrix.

        Returns:
            Indices of predictions with as many probabilities as there are classes [m]; these [m, classes];
            and indices of predictions with another number of them.
        """
        size = self._classes
        given = [p.probabilities for p in predictions]
        if given.count(None) == len(predictions):
            return np.empty(0, np.intp), np.empty((0, size)), []
        if set(map(_length, given)) == {size}:
            rows, misfits = np.arange(len(predictions)), []
        else:
            rows = np.array([row for row, p in enumerate(given) if _length(p) == size], dtype=np.intp)
            misfits = [row for row, p in enumerate(given) if p is not None and len(p) != size]
            given = [given[row] for row in rows.tolist()]
        packed = b"".join([self._pack(*values) for values in given if values is not None])
        return rows, np.frombuffer(packed, dtype=np.float64).reshape(len(rows), size), misfits

    def check(self, prediction: WirePrediction) -> tuple[int, float]:
        """Index of the predicted class, and the clipped score.

        Raises:
            BadMessage: the prediction does not fit the model.
        """
        index, score = self._class_and_score(prediction)
        if not -SCORE_TOLERANCE <= score <= 1 + SCORE_TOLERANCE:
            raise BadMessage("invalid_score", "the score must lie in [0, 1]")
        if prediction.votes and not self._class_index.keys() >= set(prediction.votes.values()):
            raise BadMessage("unknown_class", "a vote is not in the model's label set")
        if len(prediction.payload) > self._payload_bytes:
            raise BadMessage("payload_too_large", f"the payload is over {self._payload_bytes} bytes")
        if prediction.payload_uri is not None and payload_text(prediction.payload):
            raise BadMessage("invalid_field", "give payload or payload_uri, not both")
        if not _is_plain(prediction.payload, self._payload_bytes) and not _is_readable(prediction.payload):
            raise BadMessage("invalid_field", "the payload is nested too deeply, or has a number too long")
        decode_attributes(prediction.attributes)
        return index, min(max(score, 0.0), 1.0)

    def _class_and_score(self, prediction: WirePrediction) -> tuple[int, float]:
        probabilities = prediction.probabilities
        if probabilities is None:
            if prediction.predicted_class is None or prediction.score is None:
                raise BadMessage("missing_field", "give predicted_class and score, or probabilities")
            return self._index_of(prediction.predicted_class), prediction.score
        self._check_probabilities(probabilities)
        index = (
            probabilities.index(max(probabilities))
            if prediction.predicted_class is None
            else self._index_of(prediction.predicted_class)
        )
        return index, probabilities[index] if prediction.score is None else prediction.score

    def _index_of(self, name: str) -> int:
        if name not in self._class_index:
            raise BadMessage("unknown_class", "predicted_class is not in the model's label set")
        return self._class_index[name]

    def _check_probabilities(self, probabilities: list[float]) -> None:
        if len(probabilities) != self._classes:
            raise BadMessage(
                "invalid_probabilities",
                f"{len(probabilities)} probabilities for {self._classes} classes",
            )
        if min(probabilities) < -SCORE_TOLERANCE or max(probabilities) > 1 + SCORE_TOLERANCE:
            raise BadMessage("invalid_probabilities", "a probability lies outside [0, 1]")
        if abs(sum(min(max(p, 0.0), 1.0) for p in probabilities) - 1) > PROBABILITY_SUM_TOLERANCE:
            raise BadMessage("invalid_probabilities", "probabilities must sum to 1")


def _fill_in(
    classes: Indices, scores: Floats, rows: Indices, matrix: Floats, unnamed: Flags
) -> tuple[Floats, list[int]]:
    """Fill in classes and scores of predictions [n] that only have probabilities.

    Returns:
        The probabilities, in [0, 1] [m, classes]; and indices of predictions whose may be invalid.
    """
    if not len(rows):
        return matrix, []
    classes[rows[unnamed]] = matrix[unnamed].argmax(axis=1)
    unscored = np.isnan(scores[rows])
    scores[rows[unscored]] = matrix[unscored, classes[rows[unscored]]]
    probabilities = matrix.clip(0.0, 1.0)
    is_valid = (
        (matrix.min(axis=1) >= -SCORE_TOLERANCE)
        & (matrix.max(axis=1) <= 1 + SCORE_TOLERANCE)
        & (np.abs(probabilities.sum(axis=1) - 1) <= PROBABILITY_SUM_TOLERANCE)
    )
    return probabilities, rows[~is_valid].tolist()


def _length(values: list[float] | None) -> int:
    return 0 if values is None else len(values)


def _is_plain(payload: msgspec.Raw, longest: int) -> bool:
    text = bytes(payload)
    return (
        len(text) <= min(longest, _PLAIN_PAYLOAD_BYTES)
        and text.count(b"[") + text.count(b"{") <= _PLAIN_PAYLOAD_PARTS
    )


def _is_readable(payload: msgspec.Raw) -> bool:
    """Whether pydantic, which labellers may use, can parse it."""
    try:
        from_json(bytes(payload))
    except ValueError:
        return False
    return True


def payload_text(value: msgspec.Raw) -> bytes:
    """JSON text of a payload; empty if there is none."""
    text = bytes(value)
    return b"" if text in _EMPTY_PAYLOADS else text
