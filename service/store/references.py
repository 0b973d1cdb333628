"""The reference of a model: the time that "now" is compared with, where somebody has set it."""

from __future__ import annotations

from dataclasses import dataclass

from service.store.connection import Connection, unavailable_when_away
from service.store.keys import ModelKeys

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


class ReferenceStore:
    """Keeps the reference of one model; who sets it last is right."""

    def __init__(self, connection: Connection, keys: ModelKeys) -> None:
        self._connection = connection
        self._key = keys.reference

    def window(self) -> ReferenceWindow | None:
        """The window that was set, if any.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        with unavailable_when_away():
            told = self._connection.client.hgetall(self._key)
        return ReferenceWindow(*(float(told[name]) for name in _FIELDS)) if told else None

    def set(self, window: ReferenceWindow) -> None:
        """Set the window, in place of the one before.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        # All fields at once, so that no reader sees one window's beginning with another one's end.
        told = {"since": window.since, "until": window.until, "set_at": window.set_at}
        with unavailable_when_away():
            self._connection.client.hset(self._key, mapping={name: repr(at) for name, at in told.items()})

    def clear(self) -> None:
        """Let the first labels be the reference again.

        Raises:
            Unavailable: Redis cannot answer now.
        """
        with unavailable_when_away():
            self._connection.client.delete(self._key)
