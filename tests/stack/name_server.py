"""A name server for containers, run as a program: each name may have several addresses.

Its argument is JSON: the addresses of every name. Who asks is given those of the networks that it is on
itself; a network has 24 bits.
"""

from __future__ import annotations

import json
import socket
import struct
import sys

_TYPE_A = 1
_ANSWER = 0x8180
"""Flags: a response, recursion desired and available, no error."""

_HEADER = struct.Struct("!6H")


def answer(query: bytes, addresses: dict[str, list[str]], asking: str) -> bytes:
    """The response to one query; a name that nobody has here is one without addresses."""
    (number,) = struct.unpack_from("!H", query)
    end, labels = _HEADER.size, []
    while length := query[end]:
        labels.append(query[end + 1 : end + 1 + length].decode())
        end += 1 + length
    (kind,) = struct.unpack_from("!H", query, end + 1)
    question = query[_HEADER.size : end + 5]
    found = addresses.get(".".join(labels).lower(), []) if kind == _TYPE_A else []
    networks = {address.rpartition(".")[0] for own in addresses.values() if asking in own for address in own}
    reachable = [address for address in found if address.rpartition(".")[0] in networks]
    records = b"".join(
        # The name is the question's, at byte 12; it may be kept for a second.
        struct.pack("!HHHIH", 0xC00C, _TYPE_A, 1, 1, 4) + socket.inet_aton(address)
        for address in reachable
    )
    return _HEADER.pack(number, _ANSWER, 1, len(reachable), 0, 0) + question + records


def main() -> None:
    """Answer until killed."""
    addresses = json.loads(sys.argv[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", 53))
        while True:
            query, peer = server.recvfrom(512)
            server.sendto(answer(query, addresses, peer[0]), peer)


if __name__ == "__main__":
    main()
