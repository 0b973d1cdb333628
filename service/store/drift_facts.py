"""Facts of drift that the leader keeps: which groups have drifted, and which times the reference needs.

These are fields of one hash. `verdicts` has the groups that have drifted from the reference. `pins` has the
beginnings and ends of references, as JSON: consumers keep their marks of these times
(`service/domain/traffic_marks.py`).
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from service.store.connection import Argument, Connection, ModelStore, translate_redis_errors
from service.store.drift_verdicts import DriftVerdicts, pack_verdicts, unpack_verdicts
from service.store.keys import ModelKeys

_VERDICTS = "verdicts"

PINS = "pins"
"""Field of the times that are needed."""


def unpack_pins(packed: bytes | None) -> tuple[float, ...]:
    """The times whose counts are needed, as they are stored."""
    return msgspec.json.decode(packed, type=tuple[float, ...]) if packed else ()


class DriftStore(ModelStore):
    """Verdicts and pins of one model.

    Verdicts are unpacked once for as long as they stay the same.
    """

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        super().__init__(connection, keys)
        self._packed_verdicts = b""
        self._verdicts: DriftVerdicts | None = None

    def read(self) -> tuple[DriftVerdicts | None, tuple[float, ...]]:
        """The groups that have drifted, if they were ever stored, and the times that are pinned."""
        with translate_redis_errors():
            verdicts, pins = self._connection.client.hmget(self._keys.drift, _VERDICTS, PINS)
        packed = verdicts or b""
        if packed != self._packed_verdicts:
            self._packed_verdicts = packed
            self._verdicts = unpack_verdicts(packed) if packed else None
        return self._verdicts, unpack_pins(pins)

    def keep(
        self, *, epoch: int, verdicts: DriftVerdicts | None = None, pins: Collection[float] | None = None
    ) -> None:
        """Replace the verdicts and the pins, those of both that are given.

        `epoch` is the leader's.

        Raises:
            FenceRefused: a newer leader has written.
        """
        arguments: list[Argument] = [epoch]
        if verdicts is not None:
            arguments += [_VERDICTS, pack_verdicts(verdicts)]
        if pins is not None:
            arguments += [PINS, msgspec.json.encode(sorted(pins))]
        self._run_fenced("keep_drift", [self._keys.drift], arguments)
