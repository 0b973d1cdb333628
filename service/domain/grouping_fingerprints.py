"""What groupings are by, as fingerprints: under the same name a configuration may mean another partition.

What a label weighs, and what it proves of a group, is known only as long as it is known within which parts
of the traffic it was drawn evenly. So labels keep the fingerprint of the grouping that they were asked for.
"""

from __future__ import annotations

from service.domain.cells import CellSpace


def definitions(space: CellSpace) -> dict[str, bytes]:
    """`Grouping.definition` of every grouping of a model, by name."""
    return {name: grouping.definition(space.score_edges) for name, grouping in space.groupings.items()}


def grouping_key(name: str, definition: bytes) -> str:
    """What a grouping is known by, whatever it is called: its definition, or its name where it has none."""
    return definition.hex() or name
