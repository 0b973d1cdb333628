"""Makes Kafka clients that say why they cannot connect, and leave no thread behind.

If it cannot connect, the client reports only a timeout, logs the cause, and leaves its thread running. This
module reads the cause from the log and stops the thread.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.compat import KafkaNetClient

from service.config.tls import FreshContext
from service.domain.errors import Refused, Unavailable, failure_in_words
from service.kafka.oauth import TokenRefusedError, TokenUnavailableError

_CONNECT_SECONDS = 10.0
_CONNECTION_FAILURES = (KafkaConnectionError, SaslAuthenticationFailedError)
_HANDSHAKE_FAILED = "Handshake failed"
_one_at_a_time = threading.Lock()
"""Otherwise failures of clients that connect at the same time would be confused."""

_REACH_SECONDS = 3.0
_SHORTEST_SECONDS = 0.1
_DISCONNECTED = "socket disconnected"
_OTHER_PROTOCOL = (
    "no answer as Kafka gives it; the port is another service's, "
    "or `kafka.security.protocol` is not the broker's"
)
_CREDENTIALS = "mechanism, username and password of `kafka.security`"


def open_client(make: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A client of this class, with these options, that has reached a broker.

    Raises:
        Refused: a broker does not accept the login, or the two do not accept each other's certificate.
        Unavailable: no broker answers in time.
    """
    _reach(options["bootstrap_servers"], options.get("ssl_context"))
    networks: list[Any] = []

    def network(**config: Any) -> Any:
        networks.append(KafkaNetClient(**config))
        return networks[-1]

    failures = _Failures()
    logger = logging.getLogger("kafka.net.manager")
    with _one_at_a_time:
        logger.addHandler(failures)
        try:
            return make(**options, bootstrap_timeout_ms=int(_CONNECT_SECONDS * 1000), kafka_client=network)
        except BaseException as error:
            for each in networks:
                each.close()
            if not isinstance(error, KafkaError):
                raise
            raise _translated(failures.last or error, options) from error
        finally:
            logger.removeHandler(failures)


def handshake_failure(why: str) -> KafkaConnectionError:
    """The client's own error for a failed TLS handshake."""
    return KafkaConnectionError(f"{_HANDSHAKE_FAILED}: {why}")


def forget_other_threads() -> None:
    """Let a child of a fork connect: a thread of its parent that was connecting then does not exist in it."""
    _one_at_a_time._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - as `logging` does


class _Failures(logging.Handler):
    """Keeps the last failure of a connection that the client logged, except for timeouts."""

    last: KafkaError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.last = next((each for each in arguments if isinstance(each, _CONNECTION_FAILURES)), self.last)


def _reach(servers: Sequence[str], context: FreshContext | None) -> None:
    """Return once any server accepts a connection: the client would retry for long, and log every attempt.

    A TLS handshake needs an answer only, as the client reports a failed one: it waits for an answer for ever.

    Raises:
        Unavailable: none does; it says why.
    """
    deadline = time.monotonic() + _CONNECT_SECONDS
    failures: dict[str, OSError] = {}
    for server in servers:
        host, _, port = server.rpartition(":")
        seconds = min(_REACH_SECONDS, max(deadline - time.monotonic(), _SHORTEST_SECONDS))
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as connection:
                if context is not None:
                    context.wrap_socket(connection, server_hostname=host.strip("[]")).close()
        except (ssl.SSLError, KafkaConnectionError):
            return
        except OSError as error:
            failures[server] = error
        else:
            return
    causes = {server: failure_in_words(error) for server, error in failures.items()}
    why = "; ".join(dict.fromkeys(causes.values()))
    if context is not None and any(isinstance(error, TimeoutError) for error in failures.values()):
        why = f"{why}; if it uses no TLS, `kafka.security.protocol` is wrong"
    last = next(reversed(failures.values()))
    raise Unavailable("kafka", last, address=", ".join(failures), why=why) from last


def _translated(error: KafkaError, options: dict[str, Any]) -> Unavailable:
    mechanism: str | None = options.get("sasl_mechanism")
    if isinstance(error, (TokenRefusedError, TokenUnavailableError)):
        return Refused("kafka", error, f"no token: {error.args[0]}")
    logs_in = mechanism is not None
    if isinstance(error, SaslAuthenticationFailedError) or (logs_in and _DISCONNECTED in str(error)):
        # The client seldom gets the broker's answer: the broker closes the connection right after it.
        checked = "issuer, audience and times of the token" if mechanism == "OAUTHBEARER" else _CREDENTIALS
        return Refused("kafka", error, f"the login failed; check {checked}")
    if isinstance(error, KafkaConnectionError) and _HANDSHAKE_FAILED in str(error):
        _, _, why = str(error).partition(f"{_HANDSHAKE_FAILED}: ")
        return Refused(
            "kafka", error, f"the TLS handshake failed; check the certificates of both sides: {why}"
        )
    servers = ", ".join(options["bootstrap_servers"])
    return Unavailable("kafka", error, address=servers, why=_OTHER_PROTOCOL)
