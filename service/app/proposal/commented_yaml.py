"""YAML in which every key has a comment that says why its value was chosen."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from service.app.plain_text import plain

_WIDTH: Final = 100
_INDENT: Final = 2


@dataclass(frozen=True)
class Entry:
    """A key of the configuration.

    Attributes:
        key: its name.
        value: of YAML; or the entries of a section.
        why: it was chosen: paragraphs.
    """

    key: str
    value: Any | Sequence[Entry]
    why: Sequence[str]

    @property
    def is_section(self) -> bool:
        """Whether the value has entries."""
        return isinstance(self.value, tuple)


class _Dumper(yaml.SafeDumper):
    """Escapes text that is not printable: in single quotes, the parser folds the line ends of any script."""

    def represent_text(self, text: str) -> yaml.Node:
        """A text in the style that keeps it."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_text)


def document(entries: Sequence[Entry]) -> dict[str, Any]:
    """Keys and values without comments."""
    return {each.key: document(each.value) if each.is_section else each.value for each in entries}


def commented(entries: Sequence[Entry], *, heading: Sequence[str]) -> str:
    """The text of a configuration: the heading, and each entry below its comment."""
    return "\n".join([*_comment(heading, 0), "", *_lines(entries, 0)]) + "\n"


def _lines(entries: Sequence[Entry], indent: int) -> Iterator[str]:
    for each in entries:
        yield from _comment(each.why, indent)
        key = _flow(each.key)
        if each.is_section:
            yield f"{' ' * indent}{key}:"
            yield from _lines(each.value, indent + _INDENT)
        else:
            yield f"{' ' * indent}{key}: {_flow(each.value)}"


def _comment(paragraphs: Sequence[str], indent: int) -> Iterator[str]:
    """Paragraphs as a comment; those that begin with a space are not wrapped, such as commands."""
    for paragraph in paragraphs:
        text = plain(paragraph)
        lines = (
            [text] if text.startswith(" ") else textwrap.wrap(text, _WIDTH - indent, break_on_hyphens=False)
        )
        yield from (f"{' ' * indent}# {line}" for line in lines)


def _flow(value: Any) -> str:
    """A value on one line."""
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=math.inf, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("...\n").strip()
