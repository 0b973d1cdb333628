"""Making Kafka clients so that one that cannot connect says why, and leaves nothing behind.

The client tries for a while and then tells of the time alone; why it did not get through it only logs. And
the thread that it has started goes on. So both are looked after here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError
from kafka.net.compat import KafkaNetClient

from service.domain.errors import Refused, Unavailable
from service.kafka.oauth import TokenRefusedError, TokenUnavailableError

_CONNECT_SECONDS = 10.0
_CONNECTION_FAILURES = (KafkaConnectionError, SaslAuthenticationFailedError)
_HANDSHAKE_FAILED = "Handshake failed"
_one_at_a_time = threading.Lock()
"""Else the failures of another one that connects would be taken for its own."""

_DISCONNECTED = "socket disconnected"
_CREDENTIALS = "mechanism, username and password of `kafka.security`"


def connected(make: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A client that has reached a broker.

    Args:
        make: its class.
        options: what it is told.

    Raises:
        Refused: a broker does not accept the login, or the two do not accept each other's certificate.
        Unavailable: no broker answers in time.
    """
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
            raise _told(failures.last or error, mechanism=options.get("sasl_mechanism")) from error
        finally:
            logger.removeHandler(failures)


def handshake_failure(why: str) -> KafkaConnectionError:
    """The client's own error for a connection that could not be encrypted."""
    return KafkaConnectionError(f"{_HANDSHAKE_FAILED}: {why}")


class _Failures(logging.Handler):
    """Keeps what the client last logged of a connection that failed; not that its time is over."""

    last: KafkaError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.last = next((each for each in arguments if isinstance(each, _CONNECTION_FAILURES)), self.last)


def _told(error: KafkaError, *, mechanism: str | None) -> Unavailable:
    if isinstance(error, (TokenRefusedError, TokenUnavailableError)):
        return Refused("kafka", error, f"no token: {error.args[0]}")
    logs_in = mechanism is not None
    if isinstance(error, SaslAuthenticationFailedError) or (logs_in and _DISCONNECTED in str(error)):
        # The client seldom hears the broker's answer: it is followed at once by the end of the connection.
        told_by = "issuer, audience and times of the token" if mechanism == "OAUTHBEARER" else _CREDENTIALS
        remedy = f"the login failed; check {told_by}"
        return Refused("kafka", error, remedy)
    if isinstance(error, KafkaConnectionError) and _HANDSHAKE_FAILED in str(error):
        _, _, why = str(error).partition(f"{_HANDSHAKE_FAILED}: ")
        return Refused(
            "kafka", error, f"the TLS handshake failed; check the certificates of both sides: {why}"
        )
    return Unavailable("kafka", error)
