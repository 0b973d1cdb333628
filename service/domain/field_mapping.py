"""How the fields of a message are found in records of another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from service.domain.record_paths import RecordPath

TimeUnit = Literal["s", "ms", "us", "ns"]

PER_SECOND: Mapping[TimeUnit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of a unit in one second."""


@dataclass(frozen=True)
class FieldRule:
    """Where one field is.

    Attributes:
        paths: where it may be; the first that leads to something counts. Empty for a constant.
        value: the constant.
        names: of classes, by what stands in the record.
        unit: of times that are numbers, since the epoch.
        is_required: whether a record without it is refused.
    """

    paths: tuple[RecordPath, ...] = ()
    value: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    unit: TimeUnit | None = None
    is_required: bool = False


@dataclass(frozen=True)
class RecordMapping:
    """Where all fields of a message are.

    Attributes:
        fields: rules by field, without those of attributes.
        attributes: rules by the attribute's name.
        votes: rules of classes by the name of the model that predicts them.
        all_attributes: where an object is, all of whose entries are attributes; None if there is no such one.
    """

    fields: Mapping[str, FieldRule]
    attributes: Mapping[str, FieldRule] = field(default_factory=dict)
    votes: Mapping[str, FieldRule] = field(default_factory=dict)
    all_attributes: FieldRule | None = None
