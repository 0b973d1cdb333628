"""Values of attributes, from many JSON texts at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from consumers.formats.native import decode_attributes
from service.domain.errors import BadMessage
from service.domain.messages import MOST_ATTRIBUTES

Values = tuple[str | None, ...]
"""Of every attribute; None where it is missing."""


class AttributeDecoder:
    """Decodes the attributes that a model's groupings use.

    Args:
        names: of these attributes.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        # A struct is decoded several times as fast as a dictionary. Texts with further attributes, which must
        # be checked too, do not fit it.
        fields = [(f"a{at}", str, msgspec.field(default=None, name=name)) for at, name in enumerate(names)]
        struct = msgspec.defstruct("Attributes", fields, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(struct).decode

    def values(self, texts: Sequence[bytes]) -> Sequence[Values | BadMessage]:
        """Values of every text, or why it holds no attributes.

        Args:
            texts: JSON texts; empty ones have no attributes.
        """
        try:
            str(b" ".join(texts), "utf-8")
            if len(self._names) <= MOST_ATTRIBUTES:  # a struct takes any number of them
                return [msgspec.structs.astuple(self._decode(text or b"{}")) for text in texts]
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass  # some do not fit, or cannot be used
        return [self._values_or_reason(text) for text in texts]

    def _values_or_reason(self, text: bytes) -> Values | BadMessage:
        try:
            return tuple(map(decode_attributes(text).get, self._names))
        except BadMessage as error:
            return error
