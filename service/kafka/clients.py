"""Builders of the Kafka clients: called where a process or a command is put together.

They raise `ConfigurationError` if a file of the settings cannot be used, and `Unavailable` if no broker can
be reached, or they refuse.
"""

from __future__ import annotations

from typing import Any, Literal

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from service.config.settings import KafkaSettings
from service.config.tls import FreshContext
from service.kafka.connect import handshake_failure, open_client
from service.kafka.oauth import token_provider
from service.kafka.producer import LastingProducer

_REPLY_SECONDS = 30.0


def build_consumer(
    settings: KafkaSettings,
    *,
    group: str,
    without_offset: Literal["none", "earliest"] = "none",
    poll_seconds: float = 300.0,
) -> Any:
    """A consumer of bytes, as deserializers that raise would make poll() spin.

    It reads only committed records. By default a missing offset, or one that the log does not hold, is an
    error that the caller must handle.

    Args:
        settings: of Kafka.
        group: suffix of the consumer group's name.
        without_offset: where it starts without an offset; `none` leaves that to the caller.
        poll_seconds: how long it may not poll without losing its partitions.
    """
    options = _common(settings, group) | {
        "group_id": f"{settings.group_prefix}.{group}",
        "group_instance_id": None if settings.instance_id is None else f"{settings.instance_id}.{group}",
        "enable_auto_commit": False,
        "auto_offset_reset": without_offset,
        "isolation_level": "read_committed",
        "max_poll_records": settings.max_poll_records,
        "max_poll_interval_ms": int(poll_seconds * 1000),
        "session_timeout_ms": int(settings.session_timeout_seconds * 1000),
        "heartbeat_interval_ms": int(settings.session_timeout_seconds * 1000 / 3),
    }
    return open_client(KafkaConsumer, options)


def build_reader(settings: KafkaSettings) -> Any:
    """A consumer of bytes without a group: the caller assigns its partitions, and it commits nothing."""
    # If retention deletes records that are being read, go on with the first that is left.
    options = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return open_client(KafkaConsumer, _common(settings, "reader") | options)


def build_producer(
    settings: KafkaSettings,
    *,
    name: str,
    delivery_seconds: float = 120.0,
    block_seconds: float = 10.0,
    idempotent: bool = True,
) -> Any:
    """A producer that waits for all in-sync replicas, and survives failures of its client.

    Args:
        settings: of Kafka.
        name: suffix of the client id.
        delivery_seconds: how long the client retries a record under one sequence number.
        block_seconds: how long `send` may block while no broker can be reached, or none has the topic.
        idempotent: whether the broker drops duplicates of retried records. Without it, the client continues
            with the next record at once after one that it could not deliver in time.
    """
    options: dict[str, Any] = {
        "acks": "all",
        "linger_ms": 5,
        "delivery_timeout_ms": int(delivery_seconds * 1000),
        # The client requires a shorter timeout for a reply than for a delivery.
        "request_timeout_ms": int(min(_REPLY_SECONDS, delivery_seconds / 2) * 1000),
        "max_block_ms": int(block_seconds * 1000),
    }
    if not idempotent:
        # One at a time, or later records might overtake a retried one.
        options |= {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    return LastingProducer(
        lambda: open_client(KafkaProducer, _common(settings, name) | options), sequenced=idempotent
    )


def build_admin(settings: KafkaSettings) -> Any:
    """A client that creates topics."""
    return open_client(KafkaAdminClient, _common(settings, "admin"))


def _common(settings: KafkaSettings, name: str) -> dict[str, Any]:
    """Options of all clients: addresses, security and the client id."""
    security = settings.security
    common: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": f"{settings.group_prefix}-{name}",
        "metadata_max_age_ms": int(settings.metadata_seconds * 1000),
        "security_protocol": security.protocol.upper(),
    }
    if "ssl" in security.protocol:
        common["ssl_context"] = FreshContext(security, at="kafka.security", failure=handshake_failure)
    if security.mechanism == "OAUTHBEARER":
        common |= {
            "sasl_mechanism": security.mechanism,
            "sasl_oauth_token_provider": token_provider(security),
        }
    elif security.username is not None and security.password is not None:
        common |= {
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.password.get_secret_value(),
        }
    return common
