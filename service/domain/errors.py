"""Every error that Credence raises on purpose, under one root.

Two kinds of failure leave a running process alive: `Unavailable` (slow down and
try again) and `BadMessage` (dead-letter it). Anything else stops the process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from types import MappingProxyType


class CredenceError(Exception):
    """Root of all errors that Credence raises on purpose."""


class ConfigurationError(CredenceError):
    """The configuration cannot work; the message names every key at fault by its path.

    Attributes:
        problems: pairs of (path of the key, what is wrong and what to do).
        source: what is not valid.
        places: where keys are, by their paths: `line 7`.
    """

    def __init__(
        self,
        problems: list[tuple[str, str]],
        source: str = "configuration",
        places: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.problems = problems
        self.source = source
        self.places = places
        lines = "\n".join(f"  {path}{self._place(path)}: {problem}" for path, problem in problems)
        super().__init__(f"{source} is not valid:\n{lines}")

    def _place(self, path: str) -> str:
        """Where a key is; of an absent key, where its section is."""
        while path not in self.places and "." in path:
            path = path.rpartition(".")[0]
        return f" ({self.places[path]})" if path in self.places else ""


def misuse(option: str, problem: str) -> ConfigurationError:
    """The error of an option of the command line."""
    return ConfigurationError([(option, problem)], "the command line")


class UnusableConfigurationError(ConfigurationError):
    """There is no configuration: its file is missing, empty, or something else."""

    def __init__(self, source: object, problem: str) -> None:
        super().__init__([("(file)", problem)], str(source))
        self.args = (f"{source} {problem}",)


class Unavailable(CredenceError):
    """A `part` cannot be used right now; the caller backs off and tries again.

    Parts are `kafka`, `redis` and `schema_registry`.

    Args:
        part: that is unavailable.
        cause: only its type and the operating system's error are shown, as its text may quote messages.
        address: where no connection could be made; empty if there was one.
        why: what is known of the cause; derived from it if empty.
    """

    def __init__(self, part: str, cause: BaseException, *, address: str = "", why: str = "") -> None:
        self.part = part
        why = why or failure_in_words(cause)
        if address:
            key = "kafka.bootstrap_servers" if part == "kafka" else f"{part}.url"
            check = f"check `{key}`, and that {part.capitalize()} is running"
            super().__init__(f"Cannot connect to {part.capitalize()} at {address}: {why}; {check}")
        else:
            super().__init__(f"{part.replace('_', ' ')} is unavailable: {why}")

    @property
    def outage(self) -> str:
        """What is wrong for as long as this error comes again, whatever its cause each time."""
        return f"{self.part.replace('_', ' ')} is unavailable"


def failure_in_words(error: BaseException) -> str:
    """Why a connection failed, by the operating system's error behind it; else the name of its type."""
    following: BaseException | None = error
    while following is not None:
        if isinstance(following, socket.gaierror):
            return "the host name cannot be resolved"
        if "timeout" in type(following).__name__.lower():
            return "no answer in time"
        if isinstance(following, OSError) and following.errno:
            return os.strerror(following.errno).lower()
        following = following.__cause__ or following.__context__
    return type(error).__name__


class Refused(Unavailable):
    """A part answers, but refuses; an operator may change that, so the caller tries again."""

    def __init__(self, part: str, cause: BaseException, remedy: str) -> None:
        super().__init__(part, cause)
        self.args = (f"{part.replace('_', ' ')} refuses ({type(cause).__name__}): {remedy}",)

    @property
    def outage(self) -> str:
        """The refusal; an operator ends each in another way."""
        return str(self)


class Unreadable(CredenceError):
    """Not even the envelope of a record can be read; its consumer cannot go on."""


class BadMessage(CredenceError):
    """One message cannot be used; it goes to the dead-letter topic.

    Attributes:
        reason: a short, fixed word for the metric and the header, such as `malformed_json`.
        detail: one sentence for the person who reads the dead letter; it never quotes the payload.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


class TooManyBadMessages(CredenceError):
    """Too many messages are bad; the consumer pauses instead of discarding them."""


class FlushRefused(CredenceError):
    """Another owner has moved this shard on; reload it and go on from its stored offset."""


class FenceRefused(CredenceError):
    """A newer leader has taken over; this one's writes are refused."""


class HashKeyChanged(CredenceError):
    """The pools' hash key in Redis is not the one that this process has used; it must start again."""


class EmbeddedServerError(CredenceError):
    """A bundled broker or Redis could not be started."""


class RecordingError(CredenceError):
    """Recorded predictions, or what goes with them, cannot be used.

    Attributes:
        source: the file at fault.
        problem: where in it, what is wrong and what to do.
    """

    def __init__(self, source: object, problem: str) -> None:
        self.source = source
        self.problem = problem
        super().__init__(f"{source}: {problem}")


class NotKnown(CredenceError):
    """What was requested does not exist; the message says what, without repeating the request."""
