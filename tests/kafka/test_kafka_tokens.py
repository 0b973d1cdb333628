"""Tokens: got from a file or an endpoint over real sockets, kept for most of their life, never revealed."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
import trustme
from token_issuer import TokenEndpoint, TokenIssuer

from service.config.settings import KafkaSecurity
from service.domain.errors import ConfigurationError
from service.kafka.oauth import (
    EndpointTokens,
    FileTokens,
    TokenRefusedError,
    TokenUnavailableError,
    token_provider,
)

SECRET = "s3cret:of/the&tests"
LIFE = 100.0


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture
def endpoint(issuer: TokenIssuer) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(issuer, {"credence": quote_plus(SECRET)}, life_seconds=LIFE) as endpoint:
        yield endpoint


class Stopwatch:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def security(endpoint: str, **changes: Any) -> KafkaSecurity:
    plain = {
        "protocol": "sasl_ssl",
        "mechanism": "OAUTHBEARER",
        "token_endpoint": endpoint,
        "client_id": "credence",
        "client_secret": SECRET,
    }
    return KafkaSecurity.model_validate(plain | changes)


def traceback_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_a_token_is_asked_for_by_client_credentials_and_scope(
    endpoint: TokenEndpoint, issuer: TokenIssuer
) -> None:
    token = token_provider(security(endpoint.url, scope="kafka more")).token()
    assert token == issuer.given[-1]
    assert endpoint.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka more"]}]


def test_a_token_is_kept_for_most_of_its_life(endpoint: TokenEndpoint) -> None:
    stopwatch = Stopwatch()
    tokens = EndpointTokens(security(endpoint.url), stopwatch)
    first = tokens.token()
    stopwatch.seconds = 0.79 * LIFE
    assert tokens.token() == first
    stopwatch.seconds = 0.81 * LIFE
    assert tokens.token() != first
    assert len(endpoint.asked) == 2


def test_a_token_serves_on_while_the_endpoint_is_away_and_no_longer_than_it_is_good(
    endpoint: TokenEndpoint,
) -> None:
    stopwatch = Stopwatch()
    tokens = EndpointTokens(security(endpoint.url), stopwatch)
    first = tokens.token()
    endpoint.answer = 503, {}, b""
    stopwatch.seconds = 0.9 * LIFE
    assert tokens.token() == first
    stopwatch.seconds = 1.01 * LIFE
    with pytest.raises(TokenUnavailableError, match="answers 503"):
        tokens.token()


def test_a_token_of_unknown_life_is_not_kept(endpoint: TokenEndpoint) -> None:
    endpoint.answer = 200, {}, json.dumps({"access_token": "abc"}).encode()
    tokens = token_provider(security(endpoint.url))
    assert [tokens.token(), tokens.token()] == ["abc", "abc"]
    assert len(endpoint.asked) == 2


def test_credentials_that_are_refused_are_reported_without_them(endpoint: TokenEndpoint) -> None:
    wrong = security(endpoint.url, client_secret=SECRET[::-1])
    with pytest.raises(TokenRefusedError, match=r"refuses \(401, invalid_client\)") as refused:
        token_provider(wrong).token()
    assert SECRET[::-1] not in traceback_text(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"access_token": 7}',
        b'{"access_token": "confidential token"}',
        b'{"access_token": "confidential\\u0001auth"}',
        b'{"access_token": "confidential", "expires_in": "soon"}',
        b'{"access_token": "' + b"confidential" * 10_000 + b'"}',
    ],
)
def test_an_answer_that_holds_no_token_is_refused_without_telling_it(
    endpoint: TokenEndpoint, body: bytes
) -> None:
    endpoint.answer = 200, {}, body
    with pytest.raises(TokenRefusedError, match="something else than a token") as refused:
        token_provider(security(endpoint.url)).token()
    assert "confidential" not in traceback_text(refused.value)


def test_redirections_are_not_followed(endpoint: TokenEndpoint) -> None:
    endpoint.answer = 302, {"Location": endpoint.url}, b""
    with pytest.raises(TokenRefusedError, match="redirects, which is not followed"):
        token_provider(security(endpoint.url)).token()
    assert len(endpoint.asked) == 1


def test_no_proxy_sees_credentials_for_an_endpoint_without_encryption(
    endpoint: TokenEndpoint, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with TokenEndpoint(issuer, {}) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/token"))
        assert token_provider(security(endpoint.url)).token() == issuer.given[-1]
        assert proxy.asked == []


def test_an_endpoint_that_is_away_is_reported_as_such() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/token"
        with pytest.raises(TokenUnavailableError, match="cannot be reached"):
            token_provider(security(url)).token()


def test_an_endpoint_that_trickles_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.kafka.oauth._ANSWER_SECONDS", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{")
                while not ended.wait(0.1):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        with pytest.raises(TokenUnavailableError, match="in time"):
            token_provider(security(url)).token()
        ended.set()
        thread.join(5)


def test_an_encrypted_endpoint_is_known_by_its_certificate(issuer: TokenIssuer, tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    for name, ca in {"ca": authority, "stranger": stranger}.items():
        ca.cert_pem.write_to_path(str(tmp_path / f"{name}.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with TokenEndpoint(issuer, {"credence": "plain"}, context=context) as endpoint:
        known = security(endpoint.url, client_secret="plain", token_ca_file=str(tmp_path / "ca.pem"))
        assert token_provider(known).token() == issuer.given[-1]
        asked = len(endpoint.asked)
        unknown = known.model_copy(update={"token_ca_file": str(tmp_path / "stranger.pem")})
        with pytest.raises(TokenUnavailableError, match="SSLCertVerificationError"):
            token_provider(unknown).token()
        assert len(endpoint.asked) == asked


def test_a_file_of_certificates_that_cannot_be_used_is_named_by_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        token_provider(security("https://127.0.0.1/token", token_ca_file=str(tmp_path / "none.pem")))
    assert [path for path, _ in refused.value.problems] == ["kafka.security.token_ca_file"]


def test_a_file_of_certificates_is_read_again_for_every_token(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    tokens = token_provider(security("https://127.0.0.1:1/token", token_ca_file=str(path)))
    path.unlink()
    with pytest.raises(TokenRefusedError, match=r"token_ca_file cannot be used: No such file"):
        tokens.token()


def test_a_token_file_is_read_again_every_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens = FileTokens(path)
    for text in ("abc.def.ghi\n", "jkl.mno.pqr"):
        path.write_text(text)
        assert tokens.token() == text.strip()


@pytest.mark.parametrize("content", [None, b"", b"two words", b"confidential\x01auth=", b"\xff"])
def test_a_token_file_without_a_token_is_refused_without_telling_it(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with pytest.raises(TokenRefusedError, match="token_file") as refused:
        FileTokens(tmp_path / "token").token()
    assert "confidential" not in traceback_text(refused.value)
