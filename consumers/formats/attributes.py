"""Decodes the attributes of many predictions at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from consumers.formats.native import decode_attributes
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES

Values = tuple[str | None, ...]
"""Value of every attribute; None where it is missing."""


class AttributeDecoder:
    """Decodes the attributes that a model's groupings use, by their names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        # A struct is decoded several times as fast as a dictionary. It refuses texts with other attributes,
        # which need validation too.
        fields = [(f"a{at}", str, msgspec.field(default=None, name=name)) for at, name in enumerate(names)]
        struct = msgspec.defstruct("Attributes", fields, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(struct).decode

    def values(self, texts: Sequence[bytes]) -> Sequence[Values | BadMessage]:
        """Values of every JSON text, or why it is refused; empty texts have no attributes."""
        try:
            str(b" ".join(texts), "utf-8")
            if len(self._names) <= MOST_ATTRIBUTES:  # the struct has no such limit
                return [msgspec.structs.astuple(self._decode(text or b"{}")) for text in texts]
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass  # a text does not fit the struct, or is invalid
        return [self._values_or_reason(text) for text in texts]

    def _values_or_reason(self, text: bytes) -> Values | BadMessage:
        try:
            return tuple(map(decode_attributes(text).get, self._names))
        except BadMessage as error:
            return error
