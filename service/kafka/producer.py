"""A Kafka producer that survives permanent failures of its client."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    UnknownTopicOrPartitionError,
)

log = logging.getLogger(__name__)

_GIVE_UP_SECONDS = 5.0
_OF_ONE_RECORD = (MessageSizeTooLargeError, RecordListTooLargeError)


class LastingProducer:
    """A producer that replaces its client, at the next record, after the client failed permanently.

    The library's idempotent producer refuses all records after one that failed with an error that it cannot
    retry: a clock that runs an hour ahead for a moment is enough. The caller sends failed records again.

    Args:
        make: makes a client; called now, and again after each permanent failure.
        sequenced: whether the client numbers its records, as an idempotent one does; others never fail
            permanently.
    """

    def __init__(self, make: Callable[[], Any], *, sequenced: bool = True) -> None:
        self._sequenced = sequenced
        self._make = make
        self._client = make()
        self._failed = False
        self._renewing = threading.Lock()

    def send(self, topic: str, **record: Any) -> Any:
        """Send a record; returns its future.

        Raises:
            UnknownTopicOrPartitionError: the brokers answer that there is no such topic.
            KafkaError: the client does not accept the record.
            Unavailable: no client can be made now.
        """
        with self._renewing:
            if self._failed:
                self._renew()
            client = self._client
        # The client has no public call that says whether a topic is absent or no broker answers.
        metadata = client._metadata  # noqa: SLF001
        answered_at = metadata._last_successful_refresh_ms  # noqa: SLF001
        try:
            future = client.send(topic, **record)
        except KafkaError as error:
            self._note(client, error)
            has_answer = metadata._last_successful_refresh_ms != answered_at  # noqa: SLF001
            if isinstance(error, KafkaTimeoutError) and has_answer and topic not in metadata.topics():
                raise UnknownTopicOrPartitionError(topic) from error
            raise
        future.add_errback(partial(self._note, client, is_accepted=True))
        return future

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records are sent.

        Raises:
            KafkaError: they are not sent in time.
        """
        self._client.flush(timeout=timeout)

    def close(self, timeout: float | None = None) -> None:
        """Close the client within the timeout, in seconds; records not sent by then are logged, and lost."""
        _close(self._client, timeout)

    def _note(self, client: Any, error: BaseException, *, is_accepted: bool = False) -> None:
        # A record that the client accepted and could not deliver in time leaves a gap in its sequence, after
        # which the library sends nothing more. One that it did not accept leaves no gap.
        retriable = _OF_ONE_RECORD if is_accepted else (*_OF_ONE_RECORD, KafkaTimeoutError)
        is_permanent = (
            isinstance(error, KafkaError)
            and (not error.retriable or isinstance(error, KafkaTimeoutError))
            and not isinstance(error, retriable)
        )
        if is_permanent and self._sequenced and client is self._client:
            self._failed = True

    def _renew(self) -> None:
        log.warning("the producer's client has failed for good; making another one")
        failed, self._client = self._client, self._make()
        self._failed = False
        # It may take a while to give up its last records; nobody waits for it.
        threading.Thread(target=_close, args=(failed, _GIVE_UP_SECONDS), daemon=True).start()


def _close(client: Any, timeout: float | None) -> None:
    try:
        client.close(timeout=timeout)
    except KafkaError as error:
        log.warning("a producer ends with records that are not sent", extra={"cause": type(error).__name__})
        # It is still open. Once it has given up its records, it can be closed.
        client._sender.force_close()  # noqa: SLF001 - no public call does
        with suppress(KafkaError):
            client.close(timeout=_GIVE_UP_SECONDS)
