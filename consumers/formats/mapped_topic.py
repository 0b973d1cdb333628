"""A topic whose records have a shape of their own, so that none is taken for a native message by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MappedTopic:
    """How the records of a topic are read that a mapping describes.

    Attributes:
        rewrite: native JSON of a record; it raises `BadMessage`.
    """

    rewrite: Callable[[Any], bytes]
