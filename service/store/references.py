"""The reference of a model: the time that "now" is compared with, where somebody has set it."""

from __future__ import annotations

import msgspec

from service.store.connection import ModelStore, translate_redis_errors


class ReferenceWindow(msgspec.Struct, frozen=True, array_like=True):
    """When predictions were made that are the reference; times in seconds since the epoch.

    Attributes:
        since: minus infinity from the beginning.
        until: exclusive. What is predicted from then on is "now".
        set_at: when somebody set it.
    """

    since: float
    until: float
    set_at: float


class ReferenceStore(ModelStore):
    """The reference of one model; the last one that was set counts."""

    def window(self) -> ReferenceWindow | None:
        """The window that was set, if any."""
        with translate_redis_errors():
            fields = self._connection.client.hgetall(self._keys.reference)
        times = (float(fields[name.encode()]) for name in ReferenceWindow.__struct_fields__)
        return ReferenceWindow(*times) if fields else None

    def set(self, window: ReferenceWindow) -> None:
        """Set the window, in place of the one before."""
        # All fields at once, so that no reader sees one window's beginning with another one's end.
        fields = {name: repr(time) for name, time in msgspec.structs.asdict(window).items()}
        with translate_redis_errors():
            self._connection.client.hset(self._keys.reference, mapping=fields)

    def clear(self) -> None:
        """Let the first labels be the reference again."""
        with translate_redis_errors():
            self._connection.client.delete(self._keys.reference)
