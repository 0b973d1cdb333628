"""A Redis that is reached by TLS, and asks for certificates."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from redis_cluster import node_port

from service.demo.servers import EmbeddedRedis


class EncryptedRedis:
    """A Redis that asks for certificates, on a port of its own; the other port is for the tests.

    Attributes:
        authority: of both sides' certificates.
        url: of the encrypted port.
        settings: which it accepts.
    """

    def __init__(self, folder: Path, stack: ExitStack, **options: str) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        theirs = self.write("redis", self.authority.issue_cert("127.0.0.1"))
        mine = self.write("mine", self.authority.issue_cert("credence@example.com"))
        # It may be a node of a cluster.
        self.port = node_port()
        tls = {
            "tls-port": self.port,
            "tls-cert-file": theirs["certificate_file"],
            "tls-key-file": theirs["key_file"],
            "tls-ca-cert-file": str(folder / "ca.pem"),
        }
        self._options = tls | options
        self._stack = stack
        self._data = stack.enter_context(TemporaryDirectory(prefix="credence-redis-"))
        self.server = self._started(node_port())
        self.url = f"rediss://127.0.0.1:{self.port}/0"
        self.settings = {"ca_file": str(folder / "ca.pem")} | mine

    def restart(self) -> None:
        """Stop it, and start it again with its facts; what it was set to while it ran it forgets."""
        self.server.stop()
        self.server = self._started(self.server.port)

    def _started(self, port: int) -> EmbeddedRedis:
        server = EmbeddedRedis(folder=Path(self._data), port=port, options=self._options)
        return self._stack.enter_context(server)

    def write(self, name: str, certificate: trustme.LeafCert, password: str = "") -> dict[str, str]:
        """Key and certificate in files, by the keys of settings; with a password the key is encrypted."""
        files = {"certificate_file": f"{name}.pem", "key_file": f"{name}.key"}
        key = certificate.private_key_pem.bytes()
        if password:
            key = load_pem_private_key(key, None).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
            )
        (self.folder / f"{name}.key").write_bytes(key)
        (self.folder / f"{name}.pem").write_bytes(b"".join(p.bytes() for p in certificate.cert_chain_pems))
        return {which: str(self.folder / file) for which, file in files.items()}
