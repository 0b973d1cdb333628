"""Refusals of Redis, and what an operator can do about them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError

from service.domain.errors import ConfigurationError, Refused

_NO_LOGIN = re.compile(r"\bNOAUTH\b")
_NO_RIGHT = re.compile(r"\bNOPERM\b|can't run this command|can't access at least one of the keys")
"""In an error reply; within a script's error Redis 7 has only words, not the code."""

_COMMAND = re.compile(r"'([A-Za-z]+(?:\|[A-Za-z-]+)?)' command|\b([A-Z]+) is needed")
"""The refused command; the rest of a reply is never shown, as it may quote what was sent."""


def redis_refusal(error: BaseException) -> Refused | None:
    """The refusal behind an error of the client, or behind its causes, with a remedy; None if there is none.

    An operator may fix a wrong login, a missing right or a certificate without a restart of this process, so
    all of them are retried.
    """
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            why = cause.reason or type(cause).__name__
            if isinstance(cause, ssl.SSLCertVerificationError):
                why = cause.verify_message
            remedy = f"the TLS handshake failed; check the certificates of both sides: {why}"
            return Refused("redis", error, remedy)
        if isinstance(cause, ConfigurationError):
            [(key, problem), *_] = cause.problems
            return Refused("redis", error, f"{key} {problem}")
        if isinstance(cause, NoPermissionError) or _NO_RIGHT.search(str(cause)):
            command = _COMMAND.search(str(cause))
            what = f" ({(command[1] or command[2]).upper()})" if command else ""
            remedy = f"the user lacks a right{what}; grant the rights that `credence rights redis` prints"
            return Refused("redis", error, remedy)
        if isinstance(cause, (AuthenticationError, AuthorizationError)) or _NO_LOGIN.search(str(cause)):
            return Refused("redis", error, "the login failed; check username and password of `redis`")
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
