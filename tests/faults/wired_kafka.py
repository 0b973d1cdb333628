"""Apache Kafka with a listener for every client process, each behind a wire of its own."""

from __future__ import annotations

from apache_kafka import ApacheKafka, KafkaBroker
from wires import Wire, Wires, WireState

from service.demo.ports import free_port


class WiredKafka(ApacheKafka):
    """Brokers that every client process reaches over wires that it alone uses.

    A broker tells its clients the address that belongs to the listener they came by. So a process that
    begins at its own wire stays on its own wires, whatever broker it is sent to; and the tests' own
    clients, which come by the brokers' usual listener, see no fault of a wire.

    Args:
        wires: where the wires turn.
        brokers: how many, from 1 to 3.
        clients: how many client processes have wires.
    """

    def __init__(self, wires: Wires, *, brokers: int, clients: int) -> None:
        self._by_client: list[list[Wire]] = [[] for _ in range(clients)]
        self._wires = wires
        super().__init__(brokers)

    def bootstrap_of(self, client: int) -> list[str]:
        """Where one client process begins, as host:port."""
        return [f"127.0.0.1:{wire.port}" for wire in self._by_client[client]]

    def become(self, client: int, state: WireState) -> None:
        """Have all wires of one client process fail in one way, or be whole."""
        for wire in self._by_client[client]:
            wire.become(state)

    def _configuration(self, broker: KafkaBroker, advertised: str) -> dict[str, str | int]:
        usual = super()._configuration(broker, advertised)
        for client, wires in enumerate(self._by_client):
            wire = self._wires.wire(free_port())
            wires.append(wire)
            for key, address in (
                ("listeners", f"WIRE{client}://127.0.0.1:{wire.target_port}"),
                ("advertised.listeners", f"WIRE{client}://127.0.0.1:{wire.port}"),
                ("listener.security.protocol.map", f"WIRE{client}:PLAINTEXT"),
            ):
                usual[key] = f"{usual[key]},{address}"
        return usual
