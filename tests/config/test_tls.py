"""Files of certificates: read anew for every connection."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme

from service.config.settings import RedisSettings
from service.config.tls import FreshContext


class Shown:
    """A server that asks for certificates, and says which it was shown.

    Attributes:
        names: of every connection, the name in the certificate.
    """

    def __init__(self, authority: trustme.CA) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        self._context = context
        self.names: list[str] = []

    def connect(self, client: FreshContext) -> None:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._serve, args=(theirs,))
        thread.start()
        with ours, client.wrap_socket(ours, server_hostname="127.0.0.1") as encrypted:
            encrypted.recv(1)
        thread.join(10)

    def _serve(self, theirs: socket.socket) -> None:
        with theirs, self._context.wrap_socket(theirs, server_side=True) as encrypted:
            found: Any = encrypted.getpeercert()
            self.names += [name for kind, name in found["subjectAltName"] if kind == "email"]
            encrypted.sendall(b".")


def test_a_certificate_that_is_renewed_is_shown_by_the_next_connection(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    files = {name: str(tmp_path / f"{name}.pem") for name in ("certificate_file", "key_file")}

    def renew(name: str) -> None:
        certificate = authority.issue_cert(name)
        certificate.private_key_pem.write_to_path(files["key_file"])
        Path(files["certificate_file"]).write_bytes(certificate.cert_chain_pems[0].bytes())

    renew("old@example.com")
    settings = RedisSettings.model_validate(files | {"ca_file": str(tmp_path / "ca.pem")})
    client = FreshContext(settings, at="redis", failure=ConnectionError)
    server = Shown(authority)
    server.connect(client)
    renew("new@example.com")
    server.connect(client)
    assert server.names == ["old@example.com", "new@example.com"]
    Path(files["key_file"]).unlink()
    with (
        socket.socket() as unused,
        pytest.raises(ConnectionError, match=r"redis\.certificate_file .*No such file"),
    ):
        client.wrap_socket(unused, server_hostname="127.0.0.1")
