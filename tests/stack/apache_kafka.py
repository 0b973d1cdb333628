"""Apache Kafka in KRaft mode: one to three brokers as child processes, which can be killed and come back.

Every broker is a controller too, and listens three times, for clients, for the other brokers and for the
other controllers. So what stands between clients and a broker (a proxy, a login) is in nobody else's way.
"""

from __future__ import annotations

import base64
import secrets
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka_distribution import kafka_jars

from service.demo.ports import free_port
from service.demo.servers import Child
from service.domain.errors import EmbeddedServerError

_JAVA = (
    "java",
    # Brokers of tests live for seconds: what the second compiler gains later costs too much at the start.
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m", "-XX:+ExitOnOutOfMemoryError"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0

INTERNAL = "INTERNAL"
CLIENT = "CLIENT"

Configuration = Mapping[str, str | int]


class KafkaBroker:
    """One broker of a cluster.

    Attributes:
        node_id: of the broker, from 1.
        address: where it listens for clients, as host:port.
        internal_address: where it listens for brokers, in plain text and without a login.
        folder: of its configuration, its data and its output.
        child: its process, if it was ever started.
        paused: whether its process does nothing.
    """

    def __init__(self, node_id: int, folder: Path, java_options: Sequence[str]) -> None:
        self.node_id = node_id
        self._java_options = java_options
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.internal_address = f"127.0.0.1:{free_port()}"
        self.controller_address = f"127.0.0.1:{free_port()}"
        self.child: Child | None = None
        self.paused = False

    @property
    def data(self) -> Path:
        """Folder of its logs, a folder per partition in it."""
        return self.folder / "data"

    @property
    def properties(self) -> Path:
        """File of its configuration."""
        return self.folder / "broker.properties"

    @property
    def output(self) -> Path:
        """What it says: warnings and errors."""
        return self.folder / "output.log"

    @property
    def answers(self) -> bool:
        """Whether its process is there and goes on."""
        return self.running and not self.paused

    @property
    def running(self) -> bool:
        """Whether its process is there, if only paused."""
        return self.child is not None and self.child.process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start it on its ports and its data.

        Args:
            wait: until it serves clients; a broker alone cannot where others are needed for a quorum.

        Raises:
            EmbeddedServerError: it does not start.
        """
        if self.running:
            raise EmbeddedServerError(f"broker {self.node_id} runs already; stop it first")
        self.paused = False
        with self.output.open("ab") as output:
            self.child = Child(
                f"Apache Kafka (its output: {self.output})",
                [*_JAVA, *self._java_options, "-cp", _classpath(), "kafka.Kafka", str(self.properties)],
                output=output,
            )
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until it serves clients.

        Raises:
            EmbeddedServerError: it exited, or does not serve in time; with the end of what it said.
        """
        assert self.child is not None, "start it first"
        try:
            self.child.wait_until(self._serves, seconds=_START_SECONDS)
        except EmbeddedServerError as error:
            said = self.output.read_text(errors="replace")[-2_000:]
            raise EmbeddedServerError(f"{error}; it said:\n{said}") from error

    def _serves(self) -> bool:
        host, _, port = self.internal_address.partition(":")
        try:
            # First, as the client waits longer and longer for a port that nobody listens on.
            socket.create_connection((host, int(port)), 1).close()
            admin = KafkaAdminClient(bootstrap_servers=self.internal_address, bootstrap_timeout_ms=2_000)
        except (OSError, KafkaError):
            return False
        try:
            brokers = admin.describe_cluster()["brokers"]
        except KafkaError:
            return False
        finally:
            admin.close()
        return any(broker["broker_id"] == self.node_id for broker in brokers)

    def stop(self) -> None:
        """Have it hand over and stop; kill it if it does not."""
        if self.child is not None:
            self.child.resume()
            self.child.stop(seconds=_STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL: no chance to hand over."""
        if self.child is not None:
            self.child.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay, and nothing is answered."""
        assert self.child is not None, "start it first"
        self.child.pause()
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        assert self.child is not None, "start it first"
        self.child.resume()
        self.paused = False


class ApacheKafka:
    """A cluster of brokers that serve; a context manager, at whose end nothing of it is left.

    Args:
        brokers: how many, from 1 to 3.
        config: more of the brokers' configuration, or another one than `_configuration` has.
        advertise: the address, as host:port, that clients are given instead of a broker's own; for a proxy
            that leads there.
        java_options: more options of Java; those of a fast start if absent.

    Raises:
        EmbeddedServerError: Java or Maven is missing, Kafka cannot be fetched, or does not start.
    """

    def __init__(
        self,
        brokers: int = 1,
        config: Configuration | None = None,
        *,
        advertise: Callable[[str], str] = str,
        java_options: Sequence[str] | None = None,
    ) -> None:
        options = _fast_start() if java_options is None else java_options
        self._folder = tempfile.TemporaryDirectory(prefix="credence-kafka-")
        self.brokers: list[KafkaBroker] = []
        try:
            for node_id in range(1, brokers + 1):
                folder = Path(self._folder.name) / str(node_id)
                folder.mkdir()
                self.brokers.append(KafkaBroker(node_id, folder, options))
            self._addresses = [advertise(broker.address) for broker in self.brokers]
            # Begins with a letter: what begins with a dash is taken for an option.
            cluster_id = base64.urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("=")
            for broker, address in zip(self.brokers, self._addresses, strict=True):
                lines = self._configuration(broker, address) | dict(config or {})
                broker.properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            with ThreadPoolExecutor(brokers) as pool:
                list(pool.map(lambda broker: _format(broker, cluster_id), self.brokers))
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """Where clients begin, as host:port, joined by commas."""
        return ",".join(self._addresses)

    @property
    def internal_servers(self) -> str:
        """The same of the own listeners of brokers that answer, in plain text and without a login."""
        return ",".join(broker.internal_address for broker in self.brokers if broker.answers)

    def admin(self, **options: int) -> KafkaAdminClient:
        """A client that may do everything; the caller closes it."""
        return KafkaAdminClient(bootstrap_servers=self.internal_servers.split(","), **options)

    def start(self) -> None:
        """Start the brokers that do not run, and wait until they serve.

        Raises:
            EmbeddedServerError: one does not.
        """
        starting = [broker for broker in self.brokers if not broker.running]
        for broker in starting:
            broker.start(wait=False)
        for broker in starting:
            broker.wait_until_ready()

    def stop(self) -> None:
        """Stop all brokers; their data and ports stay theirs."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(lambda broker: broker.stop(), self.brokers))

    def kill(self) -> None:
        """SIGKILL to all brokers."""
        for broker in self.brokers:
            broker.kill()

    def pause(self) -> None:
        """SIGSTOP to all brokers."""
        for broker in self.brokers:
            broker.pause()

    def resume(self) -> None:
        """SIGCONT to all brokers."""
        for broker in self.brokers:
            broker.resume()

    def close(self) -> None:
        """Kill all brokers, and remove their data."""
        self.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _configuration(self, broker: KafkaBroker, advertised: str) -> dict[str, str | int]:
        replicas = len(self.brokers)
        voters = ",".join(f"{each.node_id}@{each.controller_address}" for each in self.brokers)
        listeners = f"{CLIENT}://{broker.address},{INTERNAL}://{broker.internal_address}"
        return {
            "process.roles": "broker,controller",
            "node.id": broker.node_id,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://{broker.controller_address}",
            "advertised.listeners": f"{CLIENT}://{advertised},{INTERNAL}://{broker.internal_address}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": INTERNAL,
            "log.dirs": str(broker.data),
            "auto.create.topics.enable": "false",
            # Small where a big one buys nothing here.
            "num.network.threads": 1,
            "num.io.threads": 2,
            "background.threads": 2,
            "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(replicas, 2),
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": replicas,
            # Quick where a slow one would only be waited for.
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1_000,
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 2_500,
            "controller.quorum.election.timeout.ms": 500,
            "controller.quorum.fetch.timeout.ms": 2_000,
            "replica.lag.time.max.ms": 4_000,
            "log.initial.task.delay.ms": 500,
            "log.retention.check.interval.ms": 500,
        }


def _format(broker: KafkaBroker, cluster_id: str) -> None:
    command = [*_JAVA, "-cp", _classpath(), "kafka.tools.StorageTool", "format"]
    with (
        broker.output.open("ab") as output,
        Child(
            "Kafka's StorageTool", [*command, "-t", cluster_id, "-c", str(broker.properties)], output=output
        ) as child,
    ):
        if child.process.wait(_START_SECONDS):
            raise EmbeddedServerError(
                f"the data could not be formatted:\n{broker.output.read_text()[-2_000:]}"
            )


def _classpath() -> str:
    return f"{kafka_jars()}/*"


def _fast_start() -> list[str]:
    """Options that halve the time of a start: Kafka's classes, as Java has them in memory.

    Made once, by a broker that writes them at its end. A Java that they are not of does without.
    """
    archive = kafka_jars() / "classes.jsa"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            made = Path(folder) / archive.name
            with ApacheKafka(java_options=[f"-XX:ArchiveClassesAtExit={made}"]) as kafka:
                kafka.stop()
            if not made.exists():
                return []
            made.rename(archive)
    return [f"-XX:SharedArchiveFile={archive}"]
