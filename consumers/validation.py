"""Whether predictions can be ones of a model; many at a time.

Predictions are looked at as columns. What the columns do not show to be in order is looked at by itself:
`PredictionChecks.check` alone refuses, and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from struct import Struct

import msgspec
import numpy as np
from pydantic_core import from_json

from consumers.formats.native import NOTHING, WirePrediction, decode_attributes
from service.domain.arrays import Floats, Indices
from service.domain.errors import BadMessage
from service.domain.messages import PROBABILITY_SUM_TOLERANCE, SCORE_TOLERANCE

_EMPTY_PAYLOADS = (b"", b"null")
_UNKNOWN = -1

_PLAIN_PAYLOAD_BYTES = 4_000
_PLAIN_PAYLOAD_PARTS = 100
"""A payload that is longer, or has more arrays and objects, may hold what few readers of JSON can take."""


@dataclass(frozen=True)
class Checked:
    """Predictions of one model as columns [n]; those that are refused are still among them.

    Attributes:
        predictions: as they were parsed.
        classes: index of the predicted class.
        scores: in [0, 1].
        spread: which predictions carry class probabilities [m].
        probabilities: these, in [0, 1], [m, classes].
        refused: which predictions are refused, and why.
    """

    predictions: Sequence[WirePrediction]
    classes: Indices
    scores: Floats
    spread: Indices
    probabilities: Floats
    refused: dict[int, BadMessage]


class PredictionChecks:
    """What a model's predictions are held to.

    Args:
        classes: the model's label set, in order.
        payload_bytes: longest payload.
    """

    def __init__(self, classes: Sequence[str], *, payload_bytes: int) -> None:
        self._classes = len(classes)
        # Three times as fast as to have numpy look at every number.
        self._pack = Struct(f"{len(classes)}d").pack
        self._class_index: dict[str | None, int] = {name: i for i, name in enumerate(classes)}
        self._payload_bytes = payload_bytes

    def check_all(self, predictions: Sequence[WirePrediction]) -> Checked:
        """Predictions as columns, with those that are refused and why."""
        names = [p.predicted_class for p in predictions]
        classes = np.fromiter(map(self._class_index.get, names, repeat(_UNKNOWN)), np.intp, len(names))
        scores = np.array([p.score for p in predictions], dtype=np.float64)
        spread, probabilities, odd = self._spread(predictions, classes, scores)
        in_order = (classes != _UNKNOWN) & (scores >= -SCORE_TOLERANCE) & (scores <= 1 + SCORE_TOLERANCE)
        longest = self._payload_bytes
        odd += [
            row
            for row, p in enumerate(predictions)
            if p.votes is not None
            or (p.payload is not NOTHING and (p.payload_uri is not None or not _is_plain(p.payload, longest)))
        ]
        in_order[odd] = False
        refused: dict[int, BadMessage] = {}
        for row in np.flatnonzero(~in_order).tolist():
            try:
                classes[row], scores[row] = self.check(predictions[row])
            except BadMessage as error:
                refused[row] = error
        return Checked(
            predictions=predictions,
            classes=classes,
            scores=scores.clip(0.0, 1.0),
            spread=spread,
            probabilities=probabilities,
            refused=refused,
        )

    def _spread(
        self, predictions: Sequence[WirePrediction], classes: Indices, scores: Floats
    ) -> tuple[Indices, Floats, list[int]]:
        """Class probabilities as a matrix; classes and scores that are not given are taken from them.

        Returns:
            Which predictions carry as many as there are classes; these, in [0, 1]; and which predictions have
            some that may not be in order.
        """
        size = self._classes
        told_by_all = [p.probabilities for p in predictions]
        if told_by_all.count(None) == len(predictions):
            return np.empty(0, np.intp), np.empty((0, size)), []
        if set(map(_length, told_by_all)) == {size}:
            rows, fitting, misfits = np.arange(len(predictions)), told_by_all, []
        else:
            given = [row for row, values in enumerate(told_by_all) if values is not None]
            rows = np.array([row for row in given if _length(told_by_all[row]) == size], dtype=np.intp)
            fitting = [told_by_all[row] for row in rows.tolist()]
            misfits = [row for row in given if _length(told_by_all[row]) != size]
        packed = b"".join([self._pack(*values) for values in fitting if values is not None])
        told = np.frombuffer(packed, dtype=np.float64).reshape(len(rows), size)
        unnamed = np.array(
            [predictions[row].predicted_class is None for row in rows.tolist()], dtype=np.bool_
        )
        classes[rows[unnamed]] = told[unnamed].argmax(axis=1)
        unscored = np.isnan(scores[rows])
        scores[rows[unscored]] = told[unscored, classes[rows[unscored]]]
        probabilities = told.clip(0.0, 1.0)
        in_order = (
            (told.min(axis=1) >= -SCORE_TOLERANCE)
            & (told.max(axis=1) <= 1 + SCORE_TOLERANCE)
            & (np.abs(probabilities.sum(axis=1) - 1) <= PROBABILITY_SUM_TOLERANCE)
        )
        return rows, probabilities, [*misfits, *rows[~in_order].tolist()]

    def check(self, prediction: WirePrediction) -> tuple[int, float]:
        """Index of the predicted class, and the clipped score.

        Raises:
            BadMessage: the prediction cannot be one of this model.
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


def _length(values: list[float] | None) -> int:
    return 0 if values is None else len(values)


def _is_plain(payload: msgspec.Raw, longest: int) -> bool:
    text = bytes(payload)
    return (
        len(text) <= min(longest, _PLAIN_PAYLOAD_BYTES)
        and text.count(b"[") + text.count(b"{") <= _PLAIN_PAYLOAD_PARTS
    )


def _is_readable(payload: msgspec.Raw) -> bool:
    """Whether the contract's own reader takes it, as a labeller's may."""
    try:
        from_json(bytes(payload))
    except ValueError:
        return False
    return True


def payload_text(value: msgspec.Raw) -> bytes:
    """JSON text of a payload; empty where there is none."""
    text = bytes(value)
    return b"" if text in _EMPTY_PAYLOADS else text
