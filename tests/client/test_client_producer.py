"""A producer delivers what a model logs, and keeps the model waiting for nothing."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from apache_kafka import ApacheKafka
from harness import Deploy, Deployment, wait_for

from consumers.formats.native import WirePrediction, decode_prediction
from consumers.validation import PredictionChecks
from service.client import Producer
from service.client.outbox import Outbox, Record
from service.demo.servers import EmbeddedBroker
from service.domain.errors import ConfigurationError

CLASSES = ("cat", "dog", "owl")
NOBODY = "127.0.0.1:9"
"""Where no broker is: the port of the discard protocol."""


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy(assessments="{}")


def producer_of(deployment: Deployment, servers: str | None = None, **options: Any) -> Producer:
    kafka = {
        "bootstrap_servers": [servers or deployment.broker],
        "topics": deployment.settings.kafka.topics.model_dump(),
    }
    return Producer("sorter", kafka=kafka, **options)


def received(deployment: Deployment, count: int) -> list[Any]:
    """Records of the predictions topic, once there are so many."""
    consumer, records = deployment.consumer("predictions"), []

    def enough() -> bool:
        for found in consumer.poll(200).values():
            records.extend(found)
        return len(records) >= count

    wait_for(enough, seconds=60, what=f"{count} predictions")
    return records


def test_predictions_arrive_once_with_the_item_as_key_and_the_service_accepts_them(
    deployment: Deployment,
) -> None:
    rng = np.random.default_rng(1)
    with producer_of(deployment, classes=CLASSES) as producer:
        for number, row in enumerate(rng.dirichlet(np.ones(3), 500).astype(np.float32)):
            assert producer.log(f"item-{number}", probabilities=row, attributes={"region": "north"})
    assert (producer.counters.logged, producer.counters.delivered) == (500, 500)
    records = received(deployment, 500)
    assert len(records) == len({record.key for record in records}) == 500
    predictions: list[WirePrediction] = [decode_prediction(record.value) for record in records]
    assert [p.item_id.encode() for p in predictions] == [record.key for record in records]
    assert PredictionChecks(CLASSES, payload_bytes=0).check_all(predictions).refused == {}


def test_predictions_of_an_item_are_in_one_partition(deployment: Deployment) -> None:
    with producer_of(deployment) as producer:
        for number in range(60):
            producer.log(f"item-{number % 20}", predicted="cat", score=0.9)
    places = {(record.key, record.partition) for record in received(deployment, 60)}
    assert len(places) == 20
    assert len({partition for _, partition in places}) > 1


def test_the_service_counts_what_was_logged(deployment: Deployment) -> None:
    with deployment.process("run") as process, producer_of(deployment, classes=CLASSES) as producer:
        wait_for(process.ready, seconds=60, what="readiness")
        for number in range(300):
            producer.log(number, probabilities={"owl": 0.1, "cat": 0.7, "dog": 0.2})
        wait_for(lambda: deployment.predictions_stored() == 300, seconds=60, what="300 predictions")


def test_what_is_logged_while_the_broker_does_not_answer_arrives_once_afterwards(
    deploy: Deploy, own_broker: tuple[str, ApacheKafka | EmbeddedBroker]
) -> None:
    servers, broker = own_broker
    deployment = deploy(assessments="{}", broker=servers)
    producer = producer_of(deployment, max_records=60_000)
    accepted = []
    for number in range(100_000):
        if number == 10_000:
            broker.pause()
        if producer.log(number, predicted="cat", score=0.9):
            accepted.append(number)
    dropped = producer.counters.dropped
    assert len(accepted) + dropped == 100_000
    assert dropped >= 30_000
    assert accepted == list(range(len(accepted))), "what is dropped is what comes last"
    broker.resume()
    producer.close(timeout=300)
    assert producer.counters.delivered == len(accepted)
    keys = Counter(int(record.key) for record in received(deployment, len(accepted)))
    assert keys == Counter(accepted)


def test_the_memory_of_what_waits_is_bounded_in_bytes() -> None:
    most = 2_000_000
    producer = Producer("sorter", kafka=NOBODY, max_bytes=most)
    payload = "x" * 5_000
    for number in range(100):
        producer.log(number, predicted="cat", score=0.9, payload=payload)
    tracemalloc.start()
    for number in range(5_000):
        producer.log(number, predicted="cat", score=0.9, payload=payload)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert producer.counters.dropped > 4_000
    # Twice: what tracemalloc counts of the thread that tries to connect, and of caches.
    assert held < 2 * most
    producer.close(timeout=0)


def test_a_producer_can_be_made_and_closed_while_there_is_no_broker() -> None:
    producer = Producer("sorter", kafka=NOBODY)
    assert producer.log("a", predicted="cat", score=0.9)
    assert not producer.flush(timeout=0.05)
    producer.close(timeout=0.05)
    assert producer.counters.dropped == 1
    assert not producer.log("b", predicted="cat", score=0.9)
    assert (producer.counters.logged, producer.counters.dropped) == (2, 2)


def test_losses_are_logged_by_the_thread_that_sends(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer("sorter", kafka=NOBODY, max_records=1)
    with caplog.at_level(logging.WARNING, "service.client"):
        for _ in range(3):
            producer.log("a", predicted="cat", score=0.9)
        producer.log("a", predicted="cat", score=2.0)
        wait_for(lambda: "predictions are lost" in caplog.text, seconds=20, what="the warning")
        wait_for(
            lambda: "predictions wait until Kafka takes them" in caplog.text, seconds=20, what="the cause"
        )
    producer.close(timeout=0)
    threads = {record.threadName for record in caplog.records}
    assert threads == {"credence-client"}


def test_a_record_that_is_too_large_for_kafka_fails_and_the_others_arrive(deployment: Deployment) -> None:
    with producer_of(deployment) as producer:
        producer.log("before", predicted="cat", score=0.9)
        producer.log("large", predicted="cat", score=0.9, payload="x" * 2_000_000)
        producer.log("after", predicted="cat", score=0.9)
    counters = producer.counters
    assert (counters.delivered, counters.failed, counters.dropped) == (2, 1, 0)
    assert {record.key for record in received(deployment, 2)} == {b"before", b"after"}


def _log_in_child(producer: Producer) -> None:
    assert producer.counters.logged == 0
    for number in range(10):
        producer.log(f"child-{number}", predicted="cat", score=0.9)
    producer.close()
    assert producer.counters.delivered == 10
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_parent_and_child_of_a_fork_each_deliver_what_they_have_logged(deployment: Deployment) -> None:
    with producer_of(deployment) as producer:
        for number in range(10):
            producer.log(f"parent-{number}", predicted="cat", score=0.9)
        child = multiprocessing.get_context("fork").Process(target=_log_in_child, args=(producer,))
        child.start()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL, "it reached its end"
        producer.log("parent-10", predicted="cat", score=0.9)
    keys = Counter(record.key.decode() for record in received(deployment, 21))
    assert keys == Counter([*(f"parent-{n}" for n in range(11)), *(f"child-{n}" for n in range(10))])


def test_several_threads_log_with_one_producer(deployment: Deployment) -> None:
    with producer_of(deployment) as producer:

        def log_some(thread: int) -> None:
            for number in range(500):
                producer.log(f"{thread}-{number}", predicted="cat", score=0.9)

        threads = [threading.Thread(target=log_some, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert producer.counters.delivered == 2_000
    assert len({record.key for record in received(deployment, 2_000)}) == 2_000


def test_wrong_settings_of_kafka_are_an_error_with_the_path_of_the_key() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap_server: unknown key"):
        Producer("sorter", kafka={"bootstrap_server": ["a:9092"]})
    with pytest.raises(ConfigurationError, match=r"kafka\.security\.mechanism: required"):
        Producer("sorter", kafka={"security": {"protocol": "sasl_ssl"}})


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(most_records=3, most_bytes=10_000)


def test_a_full_queue_has_room_again_for_what_was_delivered(outbox: Outbox) -> None:
    records = [Record(b"%d" % number, b"") for number in range(5)]
    assert [outbox.put(record) for record in records] == [True, True, True, False, False]
    taken = outbox.take(most_records=2, most_bytes=10_000, seconds=0)
    assert taken == records[:2]
    assert not outbox.put(records[3]), "what is on its way takes up room"
    outbox.settle(taken, [])
    assert outbox.put(records[3])
    assert (outbox.counters.delivered, outbox.counters.dropped) == (2, 3)


def test_what_is_settled_after_the_close_was_counted_already(outbox: Outbox) -> None:
    outbox.put(Record(b"a", b""))
    taken = outbox.take(most_records=1, most_bytes=10_000, seconds=0)
    outbox.close()
    outbox.settle(taken, [])
    assert (outbox.counters.delivered, outbox.counters.dropped) == (0, 1)


def test_a_batch_is_bounded_in_bytes_and_has_at_least_one_record(outbox: Outbox) -> None:
    for _ in range(3):
        outbox.put(Record(b"", bytes(1_000)))
    assert len(outbox.take(most_records=3, most_bytes=1_500, seconds=0)) == 2
    assert len(outbox.take(most_records=3, most_bytes=1, seconds=0)) == 1
