"""What groupings are by, as fingerprints: under the same name a configuration may mean another partition.

What a label weighs, and what it proves of a group, is known only as long as it is known within which parts
of the traffic it was drawn evenly. So labels keep the fingerprint of the grouping that they were asked for.
"""

from __future__ import annotations

import hashlib
import json
from typing import assert_never

from service.domain.cells import CellSpace, Grouping


def definitions(space: CellSpace) -> dict[str, bytes]:
    """Of every grouping of a model, by name, four bytes that differ where it is another partition.

    They are empty where a name can mean but one thing, and of groupings by votes, which `CellSpace.aimed_by`
    tells apart. What groups are called makes no difference, nor in which order a map names them.

    Args:
        space: cells of the model.
    """
    return {name: _definition(space, grouping) for name, grouping in space.groupings.items()}


def grouping_key(name: str, definition: bytes) -> str:
    """What a grouping is known by, whatever it is called: its definition, or its name where it has none."""
    return definition.hex() or name


def _definition(space: CellSpace, grouping: Grouping) -> bytes:
    by: object
    match grouping.kind:
        case "all" | "votes" | "challenge":
            return b""
        case "predicted_class":
            by = None
        case "score_bin" | "positive_score":
            # The bins of one class's scores are those of the other's in reverse order.
            by = space.score_edges
        case "attribute":
            by = grouping.attribute
        case "superclass":
            by = _parts(grouping)
        case _:
            assert_never(grouping.kind)
    described = json.dumps([grouping.kind, by])
    return hashlib.sha256(described.encode()).digest()[:4]


def _parts(grouping: Grouping) -> list[list[str]]:
    """Which classes are together."""
    members: dict[str, list[str]] = {}
    for name in sorted(grouping.superclasses):
        members.setdefault(grouping.superclasses[name], []).append(name)
    return sorted(members.values())
