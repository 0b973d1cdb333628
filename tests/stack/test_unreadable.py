"""Records whose bytes changed on a disk of a broker: reported, no spin, and passed when deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, wait_for
from reading import Reader, Topic

from service.domain.errors import Unreadable
from service.store.connection import Connection


def corrupt(kafka: ApacheKafka, topic: str, text: bytes) -> None:
    """Change one byte of a record of a topic with one partition, on the broker's disk."""
    (broker,) = kafka.brokers
    broker.stop()
    segment = broker.data / f"{topic}-0" / f"{0:020}.log"
    content = segment.read_bytes()
    assert content.count(text) == 1
    segment.write_bytes(content.replace(text, text.swapcase()))
    broker.start()


@pytest.fixture
def own_kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka() as kafka:
        yield kafka


def test_a_corrupt_record_ends_the_consumer_and_is_passed_when_it_is_deleted(
    own_kafka: ApacheKafka, connection: Connection
) -> None:
    topic = Topic(own_kafka)
    topic.send(1, linger_ms=0)
    topic.send(1, linger_ms=0)
    topic.send(1, linger_ms=0)
    corrupt(own_kafka, topic.name, f"{topic.name}-2".encode())
    with Reader(topic, connection) as reader:
        wait_for(lambda: reader.failure, seconds=20, what="the end of the consumer")
        assert isinstance(reader.failure, Unreadable)
        assert "at offset 1" in str(reader.failure)
        assert reader.loop.state == "unreadable"
        assert reader.counted() == 1
    topic.delete_records(2)
    with Reader(topic, connection) as reader:
        reader.wait_for_count(2)
        assert reader.metric("credence_records_lost_total") == 1


def test_a_process_that_meets_a_corrupt_record_says_so_and_stays(
    own_kafka: ApacheKafka, deploy: Deploy
) -> None:
    deployment = deploy(broker=own_kafka.bootstrap_servers, partitions=1)
    deployment.send_predictions(range(1))
    deployment.send_predictions(range(1, 2))
    corrupt(own_kafka, f"{deployment.name}.predictions", b'"picture": 1}')
    with deployment.process("consume", "predictions") as process:
        wait_for(lambda: "unreadable" in process.get("/readyz")[1], seconds=30, what="the unready state")
        assert process.get("/readyz")[0] == 503
        assert process.get("/healthz")[0] == 200
        wait_for(lambda: deployment.predictions_stored() == 1, seconds=10, what="what came before it")
        logged = "delete the records up to it"
        wait_for(lambda: logged in process.log.read_text(), seconds=30, what="what to do")
