"""A topic whose records are in a shape of their own, so that none is taken for a native message by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class MappedTopic(list[Any]):
    """Formats of a topic that a mapping describes: an empty list, as no format is asked.

    Attributes:
        rewrite: native JSON of a record; it raises `BadMessage`.
    """

    def __init__(self, rewrite: Callable[[Any], bytes]) -> None:
        super().__init__()
        self.rewrite = rewrite
