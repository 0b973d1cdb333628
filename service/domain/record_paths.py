"""Where a field is in a record of somebody else's: in its value, among its headers, or its key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_STEP = re.compile(
    r"""
    \.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | \[(?P<index>[0-9]{1,9})\]
    | \['(?P<single>(?:[^'\\]|\\['\\])*)'\]
    | \["(?P<double>(?:[^"\\]|\\["\\])*)"\]
    """,
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")
_ROOT = re.compile(r"\$(?P<root>headers|key)?(?P<steps>.*)", re.DOTALL)

Root = Literal["value", "headers", "key"]


@dataclass(frozen=True)
class RecordPath:
    """A path such as `$.output.classes[0]`, `$['top class']`, `$headers.region` or `$key`.

    Attributes:
        text: as it was written.
        root: what it begins at.
        steps: names of fields and positions in lists, from the root.
    """

    text: str
    root: Root
    steps: tuple[str | int, ...]


def parse_path(text: str) -> RecordPath:
    """The path that a text describes.

    Raises:
        ValueError: it is not a path; the message says what one is.
    """
    found = _ROOT.fullmatch(text)
    if found is None:
        raise ValueError("must be a path that begins with $, such as $.output.label, or {value: ...}")
    steps: list[str | int] = []
    rest, at = found["steps"], 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            position = len(text) - len(rest) + at + 1
            raise ValueError(f"cannot be read from character {position}; write .name, [0] or ['a name']")
        if step["index"] is not None:
            steps.append(int(step["index"]))
        else:
            quoted = step["single"] if step["single"] is not None else step["double"]
            steps.append(step["name"] if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = step.end()
    root: Root = "value"
    match found["root"]:
        case "headers":
            root = "headers"
            if len(steps) != 1 or not isinstance(steps[0], str):
                raise ValueError("must name one header, such as $headers.region or $headers['x-region']")
        case "key":
            root = "key"
            if steps:
                raise ValueError("the key of a record is taken whole: write $key")
    return RecordPath(text, root, tuple(steps))
