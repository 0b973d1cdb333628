"""What is wrong with predictions of a batch, and the dead letters that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from consumers.dead_letters import Rejected
from consumers.formats.parts import Part
from service.domain.errors import BadMessage

Error = tuple[int, int | None, BadMessage]
"""Which record of the batch, which element of its array, and what is wrong with it."""


def error_of(part: Part, row: int, error: BadMessage) -> Error:
    """The error of one prediction of a part."""
    element = part.elements[row]
    return int(part.places[row]), None if element is None else int(element), error


def place_of(records: Sequence[Any], error: Error) -> Rejected:
    """The refused message, without its text."""
    place, element, reason = error
    return Rejected(records[place], reason, index=element)


def rejected(records: Sequence[Any], refused: Iterable[tuple[Part, Sequence[Error]]]) -> Iterator[Rejected]:
    """Refused messages of every part with their texts; errors of one record follow one another.

    Texts are those that were decoded: to decode a record again might give another result.
    """
    for part, errors in refused:
        for place, group in groupby(errors, key=lambda error: error[0]):
            of_record = list(group)
            # Once per record, which may hold very many bad elements.
            texts = iter(part.texts(place, [element for _, element, _ in of_record if element is not None]))
            for _, element, error in of_record:
                text = None if element is None else next(texts)
                yield Rejected(records[place], error, index=element, element=text)
