"""Counts the fields within a value of Protobuf before the parser makes room for them, set or not.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from service.domain.errors import BadMessage

_MOST_FRAMES = 200
"""More than the parser's own limit, which is 100."""

_LONGEST_VARINT = 10
_VARINT, _LENGTH, _GROUP, _END_GROUP = 0, 2, 3, 4
_FIXED = {1: 8, 5: 4}


class WireFields:
    """Counts fields by the wire format.

    Args:
        pool: with the types, and with their extensions.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._inner: dict[str, dict[int, Descriptor]] = {}
        self._widest: dict[str, int] = {}

    def check(self, value: bytes, descriptor: Descriptor, *, room: int) -> None:
        """Refuse a value that has more fields than there is room for.

        Raises:
            BadMessage: it has more.
            ValueError: it is nested very deeply, or is no Protobuf.
            IndexError: it ends too early.
        """
        # A message takes two bytes or more, so short values need no count.
        if (len(value) // 2 + 1) * self._widest_in(descriptor) <= room:
            return
        room -= len(descriptor.fields)
        at = 0
        frames = [(len(value), self._messages_in(descriptor))]
        while frames:
            end, inner = frames[-1]
            if at >= end:
                frames.pop()
                continue
            tag, at = varint(value, at)
            kind, found = tag & 7, inner.get(tag)
            if kind == _END_GROUP:
                frames.pop()
                continue
            size, at = _content(value, at, kind)
            if kind == _GROUP or found is not None:
                frames.append((end if kind == _GROUP else at + size, self._messages_in(found)))
                room -= 0 if found is None else len(found.fields)
                if room < 0:
                    raise too_many_fields()
                if len(frames) > _MOST_FRAMES:
                    raise ValueError
            else:
                at += size

    def _widest_in(self, descriptor: Descriptor) -> int:
        """Most fields of a type that can be within a message; 0 if none can."""
        widest = self._widest.get(descriptor.full_name)
        if widest is None:
            reached = {descriptor.full_name: descriptor}
            rest = [descriptor]
            while rest:
                found = self._messages_in(rest.pop()).values()
                rest.extend(new for new in found if new.full_name not in reached)
                reached |= {new.full_name: new for new in found}
            has_messages = bool(self._messages_in(descriptor))
            widest = max(len(each.fields) for each in reached.values()) if has_messages else 0
            self._widest[descriptor.full_name] = widest
        return widest

    def _messages_in(self, descriptor: Descriptor | None) -> dict[int, Descriptor]:
        """Types of the fields that are messages, by their tags: a field of another wire type is unknown."""
        if descriptor is None:
            return {}
        inner = self._inner.get(descriptor.full_name)
        if inner is None:
            fields = list(descriptor.fields)
            if descriptor.is_extendable:
                fields += self._pool.FindAllExtensions(descriptor)
            inner = {_tag(field): field.message_type for field in fields if field.message_type is not None}
            self._inner[descriptor.full_name] = inner
        return inner


def varint(value: bytes, at: int) -> tuple[int, int]:
    """An unsigned integer, and where it ends.

    Raises:
        ValueError: it is too long.
        IndexError: the value ends before.
    """
    number = 0
    for place in range(_LONGEST_VARINT):
        byte = value[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return number, at + place + 1
    raise ValueError


def too_many_fields() -> BadMessage:
    """The refusal of a value whose fields, most of them not set, would fill the memory."""
    return BadMessage("message_too_large", "the value has very many fields for its length")


def _tag(field: FieldDescriptor) -> int:
    number: int = field.number
    return number << 3 | (_GROUP if field.type == FieldDescriptor.TYPE_GROUP else _LENGTH)


def _content(value: bytes, at: int, kind: int) -> tuple[int, int]:
    """How long the content of a field is, and where it begins."""
    if kind == _LENGTH:
        return varint(value, at)
    if kind == _VARINT:
        return 0, varint(value, at)[1]
    if kind == _GROUP:
        return 0, at
    if kind not in _FIXED:
        raise ValueError
    return _FIXED[kind], at
