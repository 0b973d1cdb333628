"""What `service.client.Producer.log` costs a model: per call, and as a ratio to a put into a bare queue.

A loop computes for a while, as a model does, and logs. Each call is timed. The thread that sends shares the
interpreter with the model: its turns, of up to 5 ms (`sys.getswitchinterval`), are in the slowest calls.
"""

from __future__ import annotations

import argparse
import os
import queue
import time
from collections.abc import Callable

import numpy as np
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from service.client import Producer
from service.demo.servers import EmbeddedBroker
from service.domain.arrays import Floats

CLASSES = [f"class-{i}" for i in range(10)]
TOPIC = "credence.predictions"


def timed(call: Callable[[int], object], calls: int, work: Floats) -> tuple[float, Floats]:
    """CPU time of the calling thread per call, and the time of each call [calls], both in microseconds."""
    taken = np.empty(calls)
    cpu = 0
    for number in range(calls):
        work @ work
        cpu_before, before = time.thread_time_ns(), time.perf_counter_ns()
        call(number)
        taken[number] = time.perf_counter_ns() - before
        cpu += time.thread_time_ns() - cpu_before
    return cpu / calls / 1e3, taken / 1e3


def row(name: str, cpu: float, taken: Floats, bare: float) -> str:
    """One line of the table."""
    middle, slow, slower = np.quantile(taken, [0.5, 0.99, 0.999])
    longest = taken.max() / 1e3
    return (
        f"{name:<34}{cpu:>9.1f}{cpu / bare:>8.1f}{middle:>10.1f}{slow:>10.1f}{slower:>10.1f}{longest:>10.1f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=150, help="of the matrices that are multiplied per call")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    work = rng.random((options.size, options.size))
    probabilities = rng.dirichlet(np.ones(len(CLASSES)), options.calls)
    bare: queue.Queue[int] = queue.Queue()
    bare_cpu, bare_taken = timed(bare.put, options.calls, work)
    print(
        f"{options.calls:,} calls each, {len(CLASSES)} classes, one attribute; load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':<34}{'CPU us':>9}{'ratio':>8}{'p50 us':>10}{'p99 us':>10}{'p99.9 us':>10}{'max ms':>10}")
    print(row("queue.Queue.put", bare_cpu, bare_taken, bare_cpu))

    def logged(producer: Producer) -> Callable[[int], object]:
        return lambda number: producer.log(
            number, probabilities=probabilities[number], attributes={"region": "north"}
        )

    with EmbeddedBroker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
        admin.create_topics([NewTopic(TOPIC, num_partitions=4, replication_factor=1)])
        admin.close()
        producer = Producer("m", kafka=broker.bootstrap_server, classes=CLASSES)
        print(row("log, the broker answers", *timed(logged(producer), options.calls, work), bare_cpu))
        producer.flush()
        broker.pause()
        print(row("log, the broker does not answer", *timed(logged(producer), options.calls, work), bare_cpu))
        broker.resume()
        producer.close(timeout=120)
        print(producer.counters)
    full = Producer("m", kafka="127.0.0.1:9", classes=CLASSES, max_records=1)
    print(row("log, no broker and a full queue", *timed(logged(full), options.calls, work), bare_cpu))
    full.close(timeout=0)


if __name__ == "__main__":
    main()
