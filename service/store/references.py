"""The reference of a model: the time that "now" is compared with, where somebody has set it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from service.store.connection import ModelStore, unavailable_when_away

_FIELDS = (b"since", b"until", b"set_at")


@dataclass(frozen=True)
class ReferenceWindow:
    """When predictions were made that are the reference.

    Attributes:
        since: seconds since the epoch; minus infinity from the beginning.
        until: the same; exclusive. What is predicted from then on is "now".
        set_at: when somebody set it.
    """

    since: float
    until: float
    set_at: float


class ReferenceStore(ModelStore):
    """The reference of one model; the last one that was set counts."""

    def window(self) -> ReferenceWindow | None:
        """The window that was set, if any."""
        with unavailable_when_away():
            fields = self._connection.client.hgetall(self._keys.reference)
        return ReferenceWindow(*(float(fields[name]) for name in _FIELDS)) if fields else None

    def set(self, window: ReferenceWindow) -> None:
        """Set the window, in place of the one before."""
        # All fields at once, so that no reader sees one window's beginning with another one's end.
        fields = {name: repr(time) for name, time in asdict(window).items()}
        with unavailable_when_away():
            self._connection.client.hset(self._keys.reference, mapping=fields)

    def clear(self) -> None:
        """Let the first labels be the reference again."""
        with unavailable_when_away():
            self._connection.client.delete(self._keys.reference)
