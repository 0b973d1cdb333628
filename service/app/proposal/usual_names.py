"""Names that fields of predictions usually have, in files and in records of other shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from service.app.files.columns import PROBABILITY
from service.domain.record_paths import parse_path

OPTIONS: Final[Mapping[str, str]] = {
    "item_id": "--item",
    "predicted_class": "--predicted",
    "probabilities": "--probabilities",
    "score": "--score",
    "time": "--time",
    "true_class": "--truth",
    "model": "--model-column",
}
"""The option that names the column of every field."""

USUAL: Final[Mapping[str, Sequence[str]]] = {
    "item_id": (
        "item_id",
        "item",
        "id",
        "uuid",
        "guid",
        "example_id",
        "row_id",
        "image_id",
        "transaction_id",
    ),
    "predicted_class": (
        "predicted_class",
        "predicted",
        "prediction",
        "pred",
        "y_pred",
        "predicted_label",
        "pred_label",
        "pred_class",
    ),
    "probabilities": ("probabilities", "probs", "class_probabilities"),
    "score": (
        "score",
        "confidence",
        "probability",
        "prob",
        "proba",
        "predicted_probability",
        "max_probability",
        "prediction_score",
    ),
    "time": ("time", "timestamp", "event_time", "predicted_at", "prediction_time", "datetime", "created_at"),
    "true_class": (
        "true_class",
        "truth",
        "true_label",
        "label",
        "labels",
        "target",
        "y_true",
        "ground_truth",
        "actual",
        "actual_class",
    ),
    "model": ("model",),
}
"""Names of columns that are taken for a field, that of the contract first."""

FAMILIES: Final = (PROBABILITY, "probability_", "probabilities_", "proba_", "prob_", "score_")
"""Beginnings of the names of columns that each have the probability of one class."""

RECORD_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "item_id": (*USUAL["item_id"], "request_id", "prediction_id", "inference_id", "record_id", "event_id"),
    # A record of a prediction has no true class: its label is what was predicted.
    "predicted_class": (
        *USUAL["predicted_class"],
        *("predict", "label", "class", "class_name", "top_class", "category", "decision"),
    ),
    "probabilities": (*USUAL["probabilities"], "predict_proba", "probability", "proba", "scores"),
    "score": (*USUAL["score"], "class_score", "likelihood"),
    "time": (*USUAL["time"], "ts", "timestamp_ms", "time_ms", "ts_ms", "event_ts", "scored_at", "logged_at"),
    "true_class": ("true_class", "truth", "true_label", "y_true", "ground_truth", "actual", "actual_class"),
    "model": (*USUAL["model"], "model_name", "model_id"),
}
"""The same for fields of records, and for tensors of model servers."""


def normalised(name: str) -> str:
    """A name of a column in lower case, with `_` between words."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def last_field(column: str) -> str:
    """The name of a column; of a path into a record, that of its last field."""
    if column.startswith("$"):
        try:
            fields = [step for step in parse_path(column).steps if isinstance(step, str)]
        except ValueError:  # a column of a file
            return column
        return fields[-1] if fields else column
    return column


def usual_name(column: str) -> str:
    """The name of a column as the tables above have it."""
    return normalised(last_field(column))


def field_of(column: str) -> str | None:
    """The field that a column of this name usually is; None if it is none."""
    names = RECORD_NAMES if column.startswith("$") else USUAL
    return next((field for field, usual in names.items() if usual_name(column) in usual), None)
