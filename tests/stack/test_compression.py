"""Producers choose how they compress; every way that Kafka knows is read."""

from __future__ import annotations

import pytest
from apache_kafka import ApacheKafka
from reading import Reader, Topic

from service.store.connection import Connection


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_predictions_are_read(
    apache_kafka: ApacheKafka, connection: Connection, codec: str
) -> None:
    topic = Topic(apache_kafka)
    topic.send(100, compression_type=codec, linger_ms=100)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(100)
