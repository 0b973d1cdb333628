"""The attributes that are stored with an item: in the pool, while it waits for a label, in its outcome."""

from __future__ import annotations

from consumers.formats.native import decode_checked_attributes
from service.domain.cells import OTHER, CellSpace, escape_reserved


class ItemAttributes:
    """Bounds the attributes of one model's items."""

    def __init__(self, space: CellSpace) -> None:
        self._used = frozenset(space.attributes)
        self._longest = space.bounds.attribute_length
        self._room = space.bounds.further_attribute_bytes

    def bound(self, value: str) -> str:
        """An attribute value with reserved names escaped; `OTHER` if it is too long."""
        escaped = escape_reserved(value)
        return escaped if len(escaped) <= self._longest else OTHER

    def stored(self, text: bytes) -> dict[str, str]:
        """Those of a checked JSON text that groupings use, and others by name while they fit."""
        attributes = decode_checked_attributes(text) if text else {}
        # Reserved values contain two underscores, which JSON may also write as escapes.
        is_plain = (
            b"__" not in text
            and b"\\" not in text
            and (len(text) <= self._longest or max(map(len, attributes.values()), default=0) <= self._longest)
        )
        bounded = attributes if is_plain else {n: self.bound(value) for n, value in attributes.items()}
        if self._used.issuperset(bounded):
            return bounded
        stored = {name: value for name, value in bounded.items() if name in self._used}
        room = self._room
        for name in sorted(bounded.keys() - self._used):
            room -= len(name.encode()) + len(bounded[name].encode())
            if room < 0:
                break
            stored[name] = bounded[name]
        return stored
