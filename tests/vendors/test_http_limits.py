"""What a client may cost: length and time of bodies and heads, calls, logins, connections."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from harness import wait_for
from office import TOKENS, V1, Caller, Office, Open

from service.domain.errors import ConfigurationError
from service.serving.vendor_api.auth import Buckets
from service.serving.web import server as web_server
from service.serving.web.server import WebServer

HEAD = f"POST {V1}/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['acme']}\r\n"
JSON = "Content-Type: application/json\r\n"


def exchange(office: Office, sent: bytes) -> bytes:
    """All that comes back until the server closes the connection, as it has to."""
    with socket.create_connection(("127.0.0.1", office.server.port), timeout=60) as wire:
        wire.sendall(sent)
        return b"".join(iter(lambda: wire.recv(65_536), b""))


def test_a_body_that_says_it_is_too_long_is_refused(open_office: Open) -> None:
    office = open_office(api={"body_bytes": 1_024})
    answer = office.caller("acme").post("/claims", b" " * 300_000)
    assert (answer.status, answer.problem, answer.headers["connection"]) == (413, "too-large", "close")


def test_a_body_that_does_not_say_its_length_is_refused_when_it_is_too_long(open_office: Open) -> None:
    office = open_office(api={"body_bytes": 1_024})
    chunks = b"".join(b"200\r\n" + b" " * 512 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
    came = exchange(office, (HEAD + JSON + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunks)
    assert came.startswith(b"HTTP/1.1 413 ")


def test_an_export_of_label_studio_may_be_longer(open_office: Open) -> None:
    office = open_office(api={"body_bytes": 1_024, "annotations_bytes": 4_096})
    acme = office.caller("acme")
    path = "/models/m/label-studio/annotations"
    assert acme.post(path, b"[" + b" " * 3_000 + b"]").status == 200
    assert acme.post(path, b"[" + b" " * 5_000 + b"]").problem == "too-large"
    assert acme.post("/models/m/label-studio/webhook", b"{" + b" " * 3_000 + b"}").problem == "too-large"


def test_a_vendor_imports_one_export_at_a_time(office: Office, acme: Caller, bolt: Caller) -> None:
    path = "/models/m/label-studio/annotations"
    head = HEAD.replace("/claims", path) + JSON + "Content-Length: 4\r\n\r\n"
    with socket.create_connection(("127.0.0.1", office.server.port), timeout=60) as wire:
        wire.sendall(head.encode() + b"[ ")
        answer = wait_for(
            lambda: (t := acme.post(path, [])).status == 429 and t, seconds=5, what="the first import"
        )
        assert (answer.problem, answer.headers["retry-after"]) == ("too-many-imports", "1")
        assert bolt.post(path, []).status == 200
        assert acme.get("/models").status == 200
        wire.sendall(b" ]")
        assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert acme.post(path, []).status == 200


def test_a_body_that_trickles_in_is_given_up(open_office: Open) -> None:
    office = open_office(body_seconds=0.5)
    came = exchange(office, (HEAD + JSON + "Content-Length: 100\r\n\r\n{").encode())
    assert came.startswith(b"HTTP/1.1 408 ")
    assert b"too-slow" in came


def test_a_head_that_trickles_in_is_given_up(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", office.server.port), timeout=60) as wire:
        began, gone = time.monotonic(), False
        for character in HEAD * 20:
            try:
                wire.sendall(character.encode())
            except OSError:
                gone = True
                break
            time.sleep(0.02)
        assert gone
        assert time.monotonic() - began < 20


def test_a_client_that_says_nothing_is_left(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 0.3)
    assert exchange(office, b"") == b""
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 10.0)
    assert office.caller("acme").get("/models").status == 200


def test_a_long_poll_is_not_taken_for_a_slow_head(open_office: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "HEAD_SECONDS", 1.0)
    office = open_office()
    assert office.caller("acme").claim(wait_seconds=2.5) == []


def test_a_head_that_is_too_long_is_refused(office: Office) -> None:
    came = exchange(office, HEAD.encode() + b"X-Long: " + b"x" * 20_000)
    assert came.startswith(b"HTTP/1.1 4")


def test_more_connections_than_allowed_are_asked_to_retry_later(open_office: Open) -> None:
    office = open_office(api={"connections": 10})
    held = [socket.create_connection(("127.0.0.1", office.server.port)) for _ in range(12)]
    try:
        answer = wait_for(
            lambda: (t := office.caller("acme").get("/models")).status == 503 and t, seconds=5, what="503"
        )
        assert "Traceback" not in str(answer.body)
    finally:
        for wire in held:
            wire.close()
    wait_for(lambda: office.caller("acme").get("/models").status == 200, seconds=5, what="200")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "application/json; charset=latin-1"},
        {"Content_Encoding": "gzip"},
    ],
)
def test_bodies_that_are_no_plain_json_are_refused(acme: Caller, headers: dict[str, str]) -> None:
    answer = acme.post("/claims", {}, **headers)
    assert (answer.status, answer.problem) == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"most": NaN}',
        b'{"most": ' + b"9" * 5_000 + b"}",
        b"[" * 20_000,
        b'{"models": ["\\ud800"]}',
        b'{"most": 1, "most_": 2}',
        b'{"most": "1"}',
        b'{"wait_seconds": -1}',
        b'{"lease_seconds": 1e300}',
        b"[]",
        b"null",
    ],
)
def test_bodies_that_are_not_what_they_should_be_are_refused(acme: Caller, body: bytes) -> None:
    for path in ("/claims", "/models/m/requests/r/answer", "/models/m/label-studio/webhook"):
        answer = acme.post(path, body)
        assert answer.status in {400, 422}, (path, answer.body)
        assert answer.problem in {"malformed", "invalid"}


def test_what_is_wrong_is_reported_by_its_place(acme: Caller) -> None:
    answer = acme.post("/claims", {"most": 0, "lease": 5})
    assert answer.problem == "invalid"
    assert {error["at"] for error in answer.body["errors"]} == {"body.most", "body.lease"}


def test_a_vendor_that_calls_too_often_is_told_when_to_go_on(open_office: Open) -> None:
    office = open_office(api={"requests_per_second": 0.01, "burst": 3})
    statuses = [office.caller("acme").get("/models").status for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    refused = office.caller("acme").get("/models")
    assert refused.problem == "too-many-calls"
    assert 1 <= int(refused.headers["retry-after"]) <= 100
    assert office.caller("bolt").get("/models").status == 200


def test_a_bucket_fills_with_time_and_is_forgotten_when_there_are_too_many() -> None:
    buckets = Buckets(per_second=2, burst=2, most=3)
    assert [buckets.take("a", 10.0), buckets.take("a", 10.0)] == [0, 0]
    wait = buckets.take("a", 10.0)
    assert 0 < wait <= 0.5 + 1e-9
    assert buckets.take("a", 10.0 + wait) == 0
    for number in range(1_000):
        buckets.take(str(number), 11.0)
    assert len(buckets) == 3


@pytest.mark.parametrize("token", [None, "", "wrong", "token-of-acme ", "\xe9", "x" * 10_000])
def test_without_a_valid_token_nothing_is_reported(office: Office, token: str | None) -> None:
    caller = Caller(office.server.port, None)
    headers = {} if token is None else {"Authorization": f"Bearer {token}x" if token else "Bearer"}
    for path in ("/models", "/claims", "/openapi.json", "/nowhere"):
        answer = caller.call("GET", V1 + path, **headers)
        assert (answer.status, answer.problem) == (401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer realm=")


@pytest.mark.parametrize("scheme", ["Basic", "bearer token-of-acme, Bearer", "", "Token"])
def test_another_scheme_than_bearer_is_refused(office: Office, scheme: str) -> None:
    answer = Caller(office.server.port, None).call(
        "GET", f"{V1}/models", Authorization=f"{scheme} {TOKENS['acme']}"
    )
    assert answer.status == 401


def test_both_tokens_hold_while_they_are_changed_and_the_old_one_does_not_after_that(
    open_office: Open, office: Office
) -> None:
    assert office.caller("acme").get("/models").status == 200
    assert office.caller("acme-next").get("/models").status == 200
    left = office.vendors["acme"] | {"token_sha256": office.vendors["acme"]["token_sha256"][1:]}
    other = open_office(vendors=dict(office.vendors) | {"acme": left})
    assert other.caller("acme").get("/models").status == 401
    assert other.caller("acme-next").get("/models").status == 200


def test_many_wrong_tokens_are_slowed_down_and_right_ones_are_not(office: Office) -> None:
    wrong = Caller(office.server.port, "wrong")
    statuses = [wrong.get("/models").status for _ in range(12)]
    assert statuses[:10] == [401] * 10
    assert statuses[-1] == 429
    assert wrong.get("/models").problem == "too-many-logins"
    assert office.caller("acme").get("/models").status == 200
    assert office.sample("credence_vendor_api_logins_refused_total") == 13


def test_a_refused_login_is_logged_without_its_token(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        Caller(office.server.port, "a-secret-nobody-knows").get("/models")
        office.caller("acme").claim()
    assert "a login was refused" in caplog.text
    answer = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert "a-secret-nobody-knows" not in answer
    assert TOKENS["acme"] not in answer


def test_a_body_is_not_read_before_the_login(office: Office) -> None:
    head = f"POST {V1}/claims HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n"
    came = exchange(office, head.encode())
    assert b"401 Unauthorized" in came


def test_the_api_is_served_over_tls(open_office: Open, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(certificate, append=True)
    office = open_office(certificate=(str(certificate), str(key)))
    office.ask(5)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    acme = Caller(office.server.port, TOKENS["acme"], tls=context)
    assert acme.claim()
    with pytest.raises(ssl.SSLError):
        Caller(office.server.port, TOKENS["acme"], tls=ssl.create_default_context()).get("/models")


def test_a_certificate_that_cannot_be_used_is_reported_by_its_key(tmp_path: Path) -> None:
    def nothing(*_: Any) -> Any:
        raise NotImplementedError

    missing = str(tmp_path / "none.pem")
    with pytest.raises(ConfigurationError) as caught:
        WebServer(nothing, name="vendor_api", host="127.0.0.1", port=0, certificate=(missing, missing))
    assert caught.value.problems[0][0] == "vendor_api.certificate_file"


def test_a_key_that_is_encrypted_is_reported_and_no_terminal_is_asked(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("localhost")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    plain = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    key.write_bytes(
        plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"of-the-key"))
    )
    serve = (
        "from service.serving.web.server import WebServer\n"
        f"files = {str(certificate)!r}, {str(key)!r}\n"
        "WebServer(None, name='vendor_api', host='127.0.0.1', port=0, certificate=files)\n"
    )
    # Its own session has no terminal; what would be asked is asked through a pipe that says nothing.
    with subprocess.Popen(
        [sys.executable, "-c", serve],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        try:
            process.wait(timeout=30)
        finally:
            process.kill()
        assert "vendor_api.certificate_file" in process.stderr.read()


def test_every_answer_is_a_document_or_a_problem(acme: Caller) -> None:
    for method, path, status, word in [
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/models/", 404, "not-found"),
        ("DELETE", "/models", 405, "method-not-allowed"),
        ("OPTIONS", "/claims", 405, "method-not-allowed"),
        ("GET", "/models/m/requests/r/answer", 405, "method-not-allowed"),
        ("GET", "/models/n/label-studio/config", 404, "not-found"),
    ]:
        answer = acme.call(method, V1 + path)
        assert (answer.status, answer.problem) == (status, word)
        if status == 405:
            assert answer.headers["allow"]
    assert json.loads(json.dumps(acme.get("/openapi.json").body))["openapi"].startswith("3.1")
