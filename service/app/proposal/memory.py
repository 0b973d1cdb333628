"""Attributes of a proposal whose tables fit the bounds, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.app.plain_text import in_bytes
from service.app.proposal.attributes import Attribute, Attributes
from service.config.bounds import Bounds
from service.config.document import Document
from service.config.loader import settings_of
from service.config.settings import Settings
from service.domain.errors import ConfigurationError
from service.domain.traffic_tables import most_table_bytes

_ROOM: Final = 2
"""Values of an attribute that have room, for each in the sample, where the default takes too much memory."""


@dataclass(frozen=True)
class Memory:
    """Attributes that fit, and the settings of their tables.

    Attributes:
        settings: with these groupings, and without assessments.
        model: name of the model.
        attributes: that fit.
        dropped: those that do not, and why.
        values: `bounds.attribute_values`.
    """

    settings: Settings
    model: str
    attributes: Sequence[Attribute]
    dropped: Sequence[tuple[Attribute, str]]
    values: int

    def reasons(self) -> list[str]:
        """What the tables cost, and why the bound is as it is."""
        most = max((each.groups for each in self.attributes), default=0)
        size = most_table_bytes(self.settings.cell_space(self.model))
        partitions = self.settings.kafka.partitions
        seen = f"The largest has {most:,} groups in the sample. " if most else ""
        lowered = (
            " Lowered from the default, so that all tables fit."
            if self.values < Bounds().attribute_values
            else ""
        )
        limit = in_bytes(self.settings.bounds.table_bytes)
        cost = (
            f"All tables of traffic take up to {in_bytes(size)} a partition of the topic, in memory and in "
            f"Redis, so {in_bytes(size * partitions)} with {partitions} partitions; the limit is {limit} a "
            f"partition (bounds.table_bytes).{lowered} `credence check` lists the tables."
        )
        return [f"Values of an attribute that have a group of their own. {seen}{cost}"]


def bound_memory(name: str, model: Mapping[str, Any], attributes: Attributes, *, by_class: str) -> Memory:
    """The attributes whose tables fit `bounds.table_bytes`: those with the most groups are left out first.

    Raises:
        ConfigurationError: the model cannot be configured, even without attributes.
    """
    chosen, dropped = list(attributes.chosen), list[tuple[Attribute, str]]()
    while True:
        most = max((each.groups for each in chosen), default=0)
        for values in (Bounds().attribute_values, min(Bounds().attribute_values, _ROOM * most)):
            try:
                settings = _settings(name, model, chosen, by_class, values)
            except ConfigurationError as error:
                problem = error
            else:
                return Memory(settings, name, chosen, dropped, values)
        if not chosen or any(not path.startswith("bounds.") for path, _ in problem.problems):
            raise problem
        largest = max(chosen, key=lambda each: each.groups)
        chosen.remove(largest)
        dropped.append(
            (largest, f"the tables would exceed bounds.table_bytes; it has {largest.groups:,} groups")
        )


def _settings(
    name: str, model: Mapping[str, Any], attributes: Sequence[Attribute], by_class: str, values: int
) -> Settings:
    groupings: dict[str, Any] = {by_class: {"by": "predicted_class"}}
    groupings |= {each.grouping: {"by": "attribute", "attribute": each.name} for each in attributes}
    content = {
        "bounds": {"attribute_values": max(values, 1)},
        "models": {name: dict(model) | {"groupings": groupings}},
    }
    return settings_of(Document(content), "the proposal", {})
