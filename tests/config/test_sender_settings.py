"""Senders of predictions over HTTP in the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

HASH, OTHER_HASH = "a1" * 32, "b2" * 32
KEY = "k" * 32


def load(folder: Path, text: str, **environment: str) -> Settings:
    path = folder / "credence.yaml"
    path.write_text(f"models: {{sorter: {{classes: [cat, dog]}}}}\n{text}", encoding="utf-8")
    return load_settings(path, environment)


def test_without_senders_there_is_no_listener_for_them(tmp_path: Path) -> None:
    assert not load(tmp_path, "").has_http_apis


def test_the_tokens_of_a_sender_may_come_from_the_environment(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "senders: {shop: {models: [sorter]}}",
        CREDENCE_SENDERS__SHOP__TOKEN_SHA256=f"{HASH}\n{OTHER_HASH}",
    )
    assert settings.senders["shop"].token_sha256 == [HASH, OTHER_HASH]
    assert settings.has_http_apis
    assert not settings.has_vendor_api


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"senders: {{shop: {{token_sha256: [{HASH}]}}}}", "senders.shop.models"),
        (f"senders: {{shop: {{models: [], token_sha256: [{HASH}]}}}}", "senders.shop.models"),
        ("senders: {shop: {models: [sorter], token_sha256: []}}", "senders.shop.token_sha256"),
        ("senders: {shop: {models: [sorter], token_sha256: [secret]}}", "senders.shop.token_sha256.0"),
        (f"senders: {{Shop: {{models: [sorter], token_sha256: [{HASH}]}}}}", "senders.Shop"),
        (f"senders: {{shop: {{models: [sorter, other], token_sha256: [{HASH}]}}}}", "senders.shop.models.1"),
        (
            (
                f"senders: {{shop: {{models: [sorter], token_sha256: [{HASH}]}}}}\n"
                f"vendors: {{acme: {{label_keys: [{KEY}], token_sha256: [{HASH}]}}}}"
            ),
            "vendors.acme.token_sha256.0",
        ),
        (
            (
                f"senders: {{acme: {{models: [sorter], token_sha256: [{HASH}]}}}}\n"
                f"vendors: {{acme: {{label_keys: [{KEY}]}}}}"
            ),
            "senders.acme",
        ),
        (
            f"senders: {{shop: {{models: [sorter], token_sha256: [{HASH}]}}}}\nvendor_api: {{port: 8400}}",
            "vendor_api.port",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_the_path_of_its_key(tmp_path: Path, text: str, path: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, text)
    assert path in [place for place, _ in error.value.problems]
