"""Which columns make the predictions of one model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.app.files.cells import Converter, to_json, to_number, to_numbers, to_text, to_texts, to_time
from service.app.files.columns import ATTRIBUTE, PROBABILITY, VOTE, Columns, listed, plain_name
from service.app.files.rows import BadCell
from service.config.model import ModelSettings
from service.domain.errors import BadMessage

FIELDS: Mapping[str, Converter] = {
    "item_id": to_text,
    "predicted_class": to_text,
    "score": to_number,
    "probabilities": to_numbers,
    "attributes": to_texts,
    "time": to_time,
    "payload": to_json,
    "payload_uri": to_text,
    "votes": to_texts,
}
"""Fields of a prediction but its model, and what makes their values of cells."""

ALL_FIELDS = ("model", *FIELDS)


@dataclass(frozen=True)
class PredictionColumns:
    """The columns of one model's predictions.

    Attributes:
        fields: column by field.
        attributes: column by attribute.
        votes: column by classifier.
        probabilities: column of every class, in the model's order; empty if there are none.
        missing: attributes of the model's groupings that have no column.
        left_out: names of attributes and of votes that are not read, by field.
    """

    fields: Mapping[str, str]
    attributes: Mapping[str, str]
    votes: Mapping[str, str]
    probabilities: Sequence[str]
    missing: Sequence[str]
    left_out: Mapping[str, Collection[str]]

    @classmethod
    def find(cls, columns: Columns, model: ModelSettings, available: Collection[str]) -> PredictionColumns:
        """Those among the columns of a file or of a row.

        Raises:
            BadMessage: not every class has a column of its probability, or one has that is no class.
        """
        attributes = columns.of_names(ATTRIBUTE, available)
        left_out = columns.left_out(ATTRIBUTE)
        missing = []
        for name in grouped_attributes(model):
            if name in available and name not in ALL_FIELDS and name not in left_out:
                attributes.setdefault(name, name)
            elif name not in attributes:
                missing.append(name)
        fields = {field: columns.of(field) for field in FIELDS}
        return cls(
            {field: column for field, column in fields.items() if column is not None and column in available},
            attributes,
            columns.of_names(VOTE, available),
            _probabilities(columns, model.classes, available),
            missing,
            {"attributes": left_out, "votes": columns.left_out(VOTE)},
        )

    @property
    def used(self) -> set[str]:
        """All columns that are read."""
        return {
            *self.fields.values(),
            *self.attributes.values(),
            *self.votes.values(),
            *self.probabilities,
        }

    def values(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Values of a row's fields; missing ones are None, or absent.

        Raises:
            BadMessage: a cell cannot be used.
        """
        values: dict[str, Any] = {
            field: FIELDS[field](cell, column)
            for field, column in self.fields.items()
            if (cell := cells.get(column)) is not None
        }
        for field, columns in (("attributes", self.attributes), ("votes", self.votes)):
            given = values.get(field) or {}
            texts = {name: text for name, text in given.items() if name not in self.left_out[field]}
            texts |= {
                name: to_text(cell, column)
                for name, column in columns.items()
                if (cell := cells.get(column)) is not None
            }
            values[field] = texts or None
        if self.probabilities and (numbers := self._probabilities_of(cells)) is not None:
            if "probabilities" in values:
                raise BadMessage("invalid_probabilities", "the probabilities are given twice")
            values["probabilities"] = numbers
        return values

    def _probabilities_of(self, cells: Mapping[str, Any]) -> list[float] | None:
        given = [cells.get(column) for column in self.probabilities]
        if given.count(None) == len(given):
            return None
        if None in given:
            column = self.probabilities[given.index(None)]
            raise BadCell(column, "empty, while other classes have a probability", reason="missing_field")
        return [to_number(cell, column) for cell, column in zip(given, self.probabilities, strict=True)]


def grouped_attributes(model: ModelSettings) -> list[str]:
    """Names of the attributes that the groupings of a model use."""
    names = [grouping.attribute for grouping in model.groupings.values() if grouping.attribute is not None]
    return list(dict.fromkeys(names))


def _probabilities(columns: Columns, classes: Sequence[str], available: Collection[str]) -> list[str]:
    found = columns.of_names(PROBABILITY, available)
    if not found:
        return []
    if others := sorted(found.keys() - set(classes)):
        raise BadMessage(
            "invalid_probabilities",
            f"no class of the model: {listed([PROBABILITY + name for name in others])}",
        )
    for name in classes:
        if name not in found:
            column = plain_name(PROBABILITY + name)
            raise BadMessage(
                "invalid_probabilities", f"every class needs a probability; there is no column {column}"
            )
    return [found[name] for name in classes]
