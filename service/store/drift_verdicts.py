"""Verdicts of drift: which groups have drifted, found while they had traffic.

A verdict holds when the group's traffic stops. It is stored, because traffic that is no longer recent cannot
show it again after a restart.
"""

from __future__ import annotations

import msgspec


class DriftVerdict(msgspec.Struct, frozen=True, array_like=True):
    """The last time that a group's recent traffic showed drift.

    Attributes:
        mix: the mix that was farthest from the reference.
        distance: its distance, noise included.
        score: the drift score: the distance minus what noise could explain.
        predictions: the most recent predictions that the group has had while it has drifted.
        at: when it was found, seconds since the epoch.
    """

    mix: str
    distance: float
    score: float
    predictions: int
    at: float


class DriftVerdicts(msgspec.Struct, frozen=True, array_like=True):
    """Groups that have drifted from one reference.

    Attributes:
        reference_until: when the reference ended, seconds since the epoch; it identifies the reference.
        groupings: by the key of the grouping, from `grouping_key`, and the name of the group.
    """

    reference_until: float
    groupings: dict[str, dict[str, DriftVerdict]]


pack_verdicts = msgspec.msgpack.Encoder().encode
unpack_verdicts = msgspec.msgpack.Decoder(DriftVerdicts).decode
