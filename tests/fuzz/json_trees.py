"""JSON of nested values in which some parts are not what they should be."""

from __future__ import annotations

import json
from typing import Any

import json_mutators as mutators

_SELDOM = 48
"""Of so many parts, few are changed, unless something else is said."""

_KEYS = [
    "",
    "a",
    "data",
    "data_base64",
    "specversion",
    "type",
    "time",
    "model_name",
    "outputs",
    "shape",
    "label",
]


def tree(chooser: mutators.Chooser, base: Any, *, seldom: int = _SELDOM) -> bytes:
    """JSON of a value: some of its parts are replaced, dropped, doubled, or wrapped in what does not belong.

    The longer a script is, the deeper its changes are: choices that are used up change nothing.
    """
    change = chooser.below(seldom)
    if change == seldom - 1:
        return mutators.text_value(chooser)
    if change == seldom - 2:
        return b"[" + tree(chooser, base, seldom=seldom) + b"]"
    if isinstance(base, dict):
        pairs = [pair for key, value in base.items() for pair in _pairs(chooser, key, value, seldom)]
        return b"{" + b",".join(pairs) + b"}"
    if isinstance(base, list):
        items = [tree(chooser, item, seldom=seldom) for item in base for _ in range(_copies(chooser, seldom))]
        return b"[" + b",".join(items) + b"]"
    return json.dumps(base).encode()


def _pairs(chooser: mutators.Chooser, key: str, value: Any, seldom: int) -> list[bytes]:
    if chooser.below(seldom) == seldom - 1:
        key = mutators.pick(chooser, [*_KEYS, *mutators.NAMES])
    before = json.dumps(key).encode() + b":"
    return [before + tree(chooser, value, seldom=seldom) for _ in range(_copies(chooser, seldom))]


def _copies(chooser: mutators.Chooser, seldom: int) -> int:
    """Mostly one."""
    return {seldom - 1: 0, seldom - 2: 2, seldom - 3: 40}.get(chooser.below(seldom), 1)
