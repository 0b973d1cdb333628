"""The client of a schema registry: logins, failures, and ids that nobody knows."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from registry_server import Server

from service.config.schema_registry import SchemaRegistrySettings
from service.domain.errors import BadMessage, ConfigurationError, Refused, Unavailable
from service.kafka.schema_registry import SchemaRegistry

SECRET = "a-secret-of-the-tests"


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    running.answers["/schemas/ids/7"] = 200, {"schema": '"string"'}
    yield running
    running.close()


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def client(server: Server, watch: Watch | None = None, **keys: Any) -> SchemaRegistry:
    return SchemaRegistry(SchemaRegistrySettings(url=server.url, **keys), stopwatch=watch or Watch())


def test_a_schema_without_a_type_is_one_of_avro(server: Server) -> None:
    found = client(server).schema(7)
    assert (found.kind, found.text, found.references) == ("AVRO", '"string"', {})


def test_a_path_in_the_url_is_kept(server: Server) -> None:
    server.answers = {"/apis/ccompat/v7/schemas/ids/7": (200, {"schema": "x", "schemaType": "PROTOBUF"})}
    for end in ("", "/"):
        settings = SchemaRegistrySettings(url=f"{server.url}/apis/ccompat/v7{end}")
        assert SchemaRegistry(settings).schema(7).kind == "PROTOBUF"


def test_references_stand_after_those_that_they_refer_to(server: Server) -> None:
    def answer(text: str, *names: str) -> tuple[int, Any]:
        return 200, {
            "schema": text,
            "references": [{"name": name, "subject": f"of/{name}", "version": 2} for name in names],
        }

    server.answers = {
        "/schemas/ids/1": answer("main", "a", "b"),
        "/subjects/of%2Fa/versions/2": answer("A", "b", "c"),
        "/subjects/of%2Fb/versions/2": answer("B", "c"),
        "/subjects/of%2Fc/versions/2": answer("C", "a"),
    }
    assert list(client(server).schema(1).references.items()) == [("c", "C"), ("b", "B"), ("a", "A")]


def test_basic_authentication_is_sent(server: Server) -> None:
    client(server, username="credence", password=SECRET).schema(7)
    login = base64.b64encode(f"credence:{SECRET}".encode()).decode()
    assert server.asked == [("/schemas/ids/7", f"Basic {login}")]


def test_a_token_is_read_again_for_every_request(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "token"
    registry = client(server, token_file=str(file))
    for token in ("one", "two\n"):
        file.write_text(token)
        registry.schema(7)
    assert [sent for _, sent in server.asked] == ["Bearer one", "Bearer two"]
    file.unlink()
    with pytest.raises(Refused, match="token_file cannot be read"):
        registry.schema(7)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_is_overloaded_or_broken_is_unavailable(server: Server, status: int) -> None:
    server.answers["/schemas/ids/7"] = status, {}
    with pytest.raises(Unavailable, match=f"schema registry is unavailable: it answers {status}") as caught:
        client(server).schema(7)
    assert caught.value.part == "schema_registry"
    server.answers["/schemas/ids/7"] = 200, {"schema": "x"}
    assert client(server).schema(7).text == "x"


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_refuses_the_login_says_what_to_check(server: Server, status: int) -> None:
    server.answers["/schemas/ids/7"] = status, {"message": SECRET}
    with pytest.raises(Refused, match=r"check kafka\.schema_registry\.username") as caught:
        client(server).schema(7)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        (404, b"<html>no such page</html>"),
        (404, {"detail": "no such path"}),
        (302, b""),
        (200, b"<html>a login page</html>"),
        (200, [1]),
        (200, {"schema": 5}),
        (200, {"schema": "x", "references": [{"name": "a"}]}),
        (200, {"schema": "x", "references": 5}),
        (200, {"schema": "x", "references": [{"name": ["a"], "subject": "s", "version": 1}]}),
        (200, {"schema": "x", "references": [{"name": "a", "subject": "s", "version": "latest"}]}),
        (200, {"schema": "x", "references": [{"name": "a", "subject": "s", "version": float("inf")}]}),
        (400, b"<html>a proxy</html>"),
        (200, b"[" * 100_000),
    ],
)
def test_what_is_no_registry_is_no_reason_to_refuse_messages(server: Server, answer: tuple[int, Any]) -> None:
    server.answers |= {"/schemas/ids/7": answer, "/subjects": answer}
    with pytest.raises(Refused, match=r"check kafka\.schema_registry\.url"):
        client(server).schema(7)


def test_an_id_that_no_registry_can_give_is_unknown_without_asking(server: Server) -> None:
    with pytest.raises(BadMessage, match="unknown_schema"):
        client(server).schema(2**31)
    assert server.asked == []


@pytest.mark.parametrize("status", [400, 409, 422])
def test_an_id_that_the_registry_rejects_is_unknown(server: Server, status: int) -> None:
    server.answers |= {"/schemas/ids/7": (status, {}), "/subjects": (200, [])}
    registry = client(server)
    for _ in range(2):
        with pytest.raises(BadMessage, match="unknown_schema"):
            registry.schema(7)
    assert [path for path, _ in server.asked] == ["/schemas/ids/7", "/subjects"]


def test_a_schema_that_is_too_long_is_unsupported(server: Server) -> None:
    server.answers["/schemas/ids/7"] = 200, {"schema": "x" * 4_200_000}
    with pytest.raises(BadMessage, match=r"unsupported_schema: .* longer than 4 MiB"):
        client(server).schema(7)


def test_a_schema_with_references_that_are_too_long_is_unsupported(server: Server) -> None:
    names = [{"name": f"{i}", "subject": f"{i}", "version": 1} for i in range(5)]
    server.answers["/schemas/ids/7"] = 200, {"schema": "x", "references": names}
    for i in range(5):
        server.answers[f"/subjects/{i}/versions/1"] = 200, {"schema": "x" * 1_000_000}
    with pytest.raises(BadMessage, match=r"unsupported_schema: .* longer than 4 MiB"):
        client(server).schema(7)


def test_a_registry_of_very_many_subjects_answers(server: Server) -> None:
    server.answers["/subjects"] = 200, ["x" * 100] * 50_000
    client(server).check()


def test_a_registry_that_is_away_is_unavailable() -> None:
    server = Server()
    server.close()
    with pytest.raises(Unavailable, match="connection refused"):
        client(server).schema(7)


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.0 200 OK\r\nX: ", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 404 Not Found\r\n\r\n"]
)
def test_a_reply_whose_bytes_come_slowly_is_not_awaited_for_ever(begin: bytes) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(begin)
            while not ended.wait(0.05):
                connection.sendall(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with pytest.raises(Unavailable):
            SchemaRegistry(SchemaRegistrySettings(url=url, timeout_seconds=0.3)).schema(7)
    finally:
        ended.set()
        thread.join(10)
        listener.close()


def test_an_unknown_id_is_asked_for_again_after_some_seconds(server: Server) -> None:
    watch = Watch()
    registry = client(server, watch)
    for _ in range(3):
        with pytest.raises(BadMessage, match="unknown_schema"):
            registry.schema(8)
    assert len(server.asked) == 1
    server.answers["/schemas/ids/8"] = 200, {"schema": "registered"}
    watch.now += 10.0
    assert registry.schema(8).text == "registered"


def test_a_flood_of_unknown_ids_is_no_flood_of_requests(server: Server) -> None:
    watch = Watch()
    registry = client(server, watch)
    for number in range(1_000, 2_000):
        with pytest.raises(BadMessage, match="unknown_schema"):
            registry.schema(number)
    assert len(server.asked) == 100
    watch.now += 10.0
    assert registry.schema(7).text == '"string"'


def test_a_reference_that_is_gone_makes_a_schema_unknown(server: Server) -> None:
    reference = {"name": "a", "subject": "a", "version": 1}
    server.answers["/schemas/ids/1"] = 200, {"schema": "x", "references": [reference]}
    with pytest.raises(BadMessage, match="unknown_schema"):
        client(server).schema(1)


def test_a_registry_is_verified_by_the_configured_certificates(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = Server(context)
    server.answers["/schemas/ids/7"] = 200, {"schema": "x"}
    try:
        for name, each in (("good.pem", authority), ("bad.pem", other)):
            each.cert_pem.write_to_path(str(tmp_path / name))
        assert client(server, ca_file=str(tmp_path / "good.pem")).schema(7).text == "x"
        with pytest.raises(Unavailable, match="schema registry is unavailable"):
            client(server, ca_file=str(tmp_path / "bad.pem")).schema(7)
    finally:
        server.close()


def test_a_file_of_certificates_that_is_missing_is_found_at_the_start(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.schema_registry\.ca_file"):
        client(server, ca_file=str(tmp_path / "missing.pem"))
