"""Records of bad messages, and how many messages they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import json_mutators as mutators
from store_site import Record

from consumers.formats.native import decode_predictions


def records(chooser: mutators.Chooser, count: int) -> list[Record]:
    """Bad records among good ones, with gaps in their offsets."""
    made, offset = [], 0
    for _ in range(count):
        offset += 1 + (chooser.below(8) == 0)
        made.append(
            Record(
                offset,
                None if chooser.below(40) == 0 else mutators.value(chooser),
                mutators.pick(chooser, [None, b"", b"k", b"\xff"]),
                mutators.headers(chooser),
                mutators.timestamp_ms(chooser),
            )
        )
    return made


def messages_in(batch: Sequence[Any], message_bytes: int) -> int:
    """How many messages records hold: a bad one is one, an array as many as it has elements."""
    total = 0
    for one in batch:
        value = one.value or b""
        refused_whole = len(value) > message_bytes or any(
            (name == "ce_type" and content != b"dev.credence.prediction.v1")
            or (name == "ce_specversion" and content != b"1.0")
            for name, content in one.headers
        )
        total += 1 if refused_whole else len(decode_predictions(value))
    return total
