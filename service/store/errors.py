"""Whether Redis refuses, and what an operator can do about it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError

from service.domain.errors import ConfigurationError, Refused

_NO_LOGIN = re.compile(r"\bNOAUTH\b")
_NO_RIGHT = re.compile(r"\bNOPERM\b|can't run this command|can't access at least one of the keys")
"""In an error reply; within a script's error Redis 7 tells it in words alone."""

_COMMAND = re.compile(r"'([A-Za-z]+(?:\|[A-Za-z-]+)?)' command|\b([A-Z]+) is needed")
"""What was refused; nothing else of a reply is told, as it may quote what was sent."""


def redis_refusal(error: BaseException) -> Refused | None:
    """What Redis refuses, and the remedy; None where it does not.

    A wrong login, a missing right or a certificate stays wrong until somebody mends it, but may then be right
    without a restart; so all are tried again.

    Args:
        error: that the client raised; what it was raised from is looked at too.
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
            remedy = f"the user lacks a right{what}; grant what `credence rights redis` tells"
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
