"""What a dead-letter topic holds, read with a client of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import Deployment, wait_for
from kafka import KafkaConsumer


def letters_of(deployment: Deployment, count: int, *, seconds: float = 60) -> list[Any]:
    """All records of the dead-letter topic once it holds so many."""
    consumer = KafkaConsumer(
        f"{deployment.name}.dead-letters",
        bootstrap_servers=deployment.broker,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    found: list[Any] = []

    def enough() -> bool:
        for records in consumer.poll(200).values():
            found.extend(records)
        read_up = all((consumer.highwater(tp) or 0) <= consumer.position(tp) for tp in consumer.assignment())
        return read_up and len(found) >= count

    try:
        wait_for(enough, seconds=seconds, what=f"{count} dead letters")
    finally:
        consumer.close(autocommit=False)
    return found


def header(record: Any, name: str) -> str | None:
    """One header of a record, as text."""
    return next((content.decode() for key, content in record.headers if key == name), None)


def places(records: Sequence[Any]) -> list[tuple[str | None, ...]]:
    """Where the messages of dead letters stood, in order."""
    named = ("credence-source-partition", "credence-source-offset", "credence-source-index")
    return sorted((tuple(header(record, name) for name in named) for record in records), key=str)
