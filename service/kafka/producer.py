"""A Kafka producer that goes on after its client has failed for good."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, RecordListTooLargeError

log = logging.getLogger(__name__)

_GIVE_UP_SECONDS = 5.0
_OF_ONE_RECORD = (MessageSizeTooLargeError, RecordListTooLargeError)


class LastingProducer:
    """A producer whose client is made anew, for the next record, when it has failed for good.

    The library's idempotent producer refuses every record that follows one which failed in a way that cannot
    be tried again: a clock that ran an hour ahead for a moment is enough. What failed is the caller's to give
    again.

    Args:
        make: makes a client; called now, and again when one has failed.
        sequenced: whether the client numbers its records, as an idempotent one does; another one never
            fails for good.
    """

    def __init__(self, make: Callable[[], Any], *, sequenced: bool = True) -> None:
        self._sequenced = sequenced
        self._make = make
        self._client = make()
        self._failed = False
        self._renewing = threading.Lock()

    def send(self, topic: str, **record: Any) -> Any:
        """Give a record to the client; its future.

        Raises:
            KafkaError: the client does not take the record.
            Unavailable: no client can be made now.
        """
        with self._renewing:
            if self._failed:
                self._renew()
            client = self._client
        try:
            future = client.send(topic, **record)
        except KafkaError as error:
            self._note(client, error)
            raise
        future.add_errback(partial(self._note, client, given=True))
        return future

    def flush(self, timeout: float | None = None) -> None:
        """Wait until what was given is sent, so many seconds at most.

        Raises:
            KafkaError: it is not.
        """
        self._client.flush(timeout=timeout)

    def close(self, timeout: float | None = None) -> None:
        """Close the client, after so many seconds at most; what is not sent by then is told of, and lost."""
        _close(self._client, timeout)

    def _note(self, client: Any, error: BaseException, *, given: bool = False) -> None:
        # A record that the client has taken and could not deliver in time leaves a gap in its sequence, after
        # which the library sends nothing more. One that it has not taken leaves it as it was.
        passing = _OF_ONE_RECORD if given else (*_OF_ONE_RECORD, KafkaTimeoutError)
        for_good = (
            isinstance(error, KafkaError)
            and (not error.retriable or isinstance(error, KafkaTimeoutError))
            and not isinstance(error, passing)
        )
        if for_good and self._sequenced and client is self._client:
            self._failed = True

    def _renew(self) -> None:
        log.warning("the producer's client has failed for good; making another one")
        failed, self._client = self._client, self._make()
        self._failed = False
        # It may take its time to give up what it still holds, and has nothing more to say.
        threading.Thread(target=_close, args=(failed, _GIVE_UP_SECONDS), daemon=True).start()


def _close(client: Any, timeout: float | None) -> None:
    try:
        client.close(timeout=timeout)
    except KafkaError as error:
        log.warning("a producer ends with records that are not sent", extra={"cause": type(error).__name__})
        # It is as open as before. Once it has given up what it holds, it can be closed.
        client._sender.force_close()  # noqa: SLF001 - no public call does
        with suppress(KafkaError):
            client.close(timeout=_GIVE_UP_SECONDS)
