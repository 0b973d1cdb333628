"""Vendors in the settings: what is accepted, what is refused, and how secrets come from files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from service.config.loader import load_settings
from service.config.new_secrets import new_label_key, new_token
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

MODELS = (
    "models: {sorter: {classes: [cat, dog], assessments: {all: {budget: {labels: 9}}}}, "
    "plain: {classes: [a, b]}}\n"
)
KEY, OTHER_KEY = "k" * 32, "o" * 32
HASH = "a1" * 32


def load(directory: Path, text: str, environment: dict[str, str] | None = None) -> Settings:
    path = directory / "credence.yaml"
    path.write_text(MODELS + text, encoding="utf-8")
    return load_settings(path, environment or {})


def vendors(acme: str, bolt: str | None = None) -> str:
    text = f"vendors: {{acme: {{{acme}}}"
    return text + (f", bolt: {{{bolt}}}}}\n" if bolt is not None else "}\n")


def test_without_vendors_nobody_in_particular_is_asked(tmp_path: Path) -> None:
    assert load(tmp_path, "").vendors_of("sorter") == {}


def test_a_vendor_is_asked_about_its_models_or_about_all(tmp_path: Path) -> None:
    settings = load(
        tmp_path, vendors(f"label_keys: [{KEY}], models: [sorter], share: 2.5", f"label_keys: [{OTHER_KEY}]")
    )
    assert {name: vendor.share for name, vendor in settings.vendors_of("sorter").items()} == {
        "acme": 2.5,
        "bolt": 1.0,
    }
    assert list(settings.vendors_of("plain")) == ["bolt"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (vendors(f"label_keys: [{KEY}], models: [sorter, other]"), "vendors.acme.models.1"),
        (vendors(f"label_keys: [{KEY}], models: []"), "vendors.acme.models"),
        (vendors(f"label_keys: [{KEY}], models: [plain]"), "models.sorter.assessments"),
        (vendors(f"label_keys: [{KEY}], labelling_page: true"), "vendors.acme.token_sha256"),
        (vendors(f"label_keys: [{KEY}], labelling_page: sometimes"), "vendors.acme.labelling_page"),
        ("vendor_api: {image_origins: ['https://images.example/']}\n", "vendor_api.image_origins.0"),
        ("vendor_api: {image_origins: ['https://*.example']}\n", "vendor_api.image_origins.0"),
        ('vendor_api: {image_origins: ["https://a.example; script-src *"]}\n', "vendor_api.image_origins.0"),
        ("vendor_api: {image_origins: ['javascript:']}\n", "vendor_api.image_origins.0"),
        ("vendor_api: {session_hours: 0}\n", "vendor_api.session_hours"),
        (vendors("share: 1"), "vendors.acme.label_keys"),
        (vendors("label_keys: []"), "vendors.acme.label_keys"),
        (vendors(f"label_keys: [{KEY[1:]}]"), "vendors.acme.label_keys.0"),
        (vendors(f"label_keys: ['{KEY} ']"), "vendors.acme.label_keys.0"),
        (vendors(f"label_keys: [{KEY}, {KEY}]"), "vendors.acme.label_keys.1"),
        (vendors(f"label_keys: [{KEY}]", f"label_keys: [{OTHER_KEY}, {KEY}]"), "vendors.bolt.label_keys.1"),
        (vendors(f"label_keys: [{KEY}], token_sha256: [{HASH[1:]}]"), "vendors.acme.token_sha256.0"),
        (vendors(f"label_keys: [{KEY}], token_sha256: [{'g' * 64}]"), "vendors.acme.token_sha256.0"),
        (
            vendors(f"label_keys: [{KEY}], token_sha256: [{HASH}, {HASH.upper()}]"),
            "vendors.acme.token_sha256.1",
        ),
        (
            vendors(
                f"label_keys: [{KEY}], token_sha256: [{HASH}]",
                f"label_keys: [{OTHER_KEY}], token_sha256: [{HASH}]",
            ),
            "vendors.bolt.token_sha256.0",
        ),
        (vendors(f"label_keys: [{KEY}], topic: credence.labels"), "vendors.acme.topic"),
        (vendors(f"label_keys: [{KEY}], topic: credence.label-requests"), "vendors.acme.topic"),
        (
            vendors(f"label_keys: [{KEY}], topic: mine", f"label_keys: [{OTHER_KEY}], topic: mine"),
            "vendors.bolt.topic",
        ),
        (vendors(f"label_keys: [{KEY}], share: 0"), "vendors.acme.share"),
        (
            vendors(f"label_keys: [{KEY}], token_sha256: [{HASH}]") + "bounds: {payload_bytes: 65536}\n",
            "vendor_api.body_bytes",
        ),
        (vendors(f"label_keys: [{KEY}], share: .inf"), "vendors.acme.share"),
        (vendors(f"label_keys: [{KEY}]").replace("acme", "Acme"), "vendors.Acme"),
        (vendors(f"label_keys: [{KEY}]").replace("acme", "a__b"), "vendors.a__b"),
        ("vendor_api: {certificate_file: a.pem}\n", "vendor_api.key_file"),
        ("vendor_api: {key_file: a.pem}\n", "vendor_api.certificate_file"),
        ("vendor_api: {most: 0}\n", "vendor_api.most"),
        (
            vendors(f"label_keys: [{KEY}], token_sha256: [{HASH}]") + "vendor_api: {port: 8400}\n",
            "vendor_api.port",
        ),
    ],
)
def test_what_cannot_be_meant_of_vendors_is_named_by_its_path(tmp_path: Path, text: str, path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert [where for where, _ in caught.value.problems] == [path]
    assert KEY[1:] not in str(caught.value)


def test_secrets_of_vendors_come_from_files_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n{OTHER_KEY}\n")
    (tmp_path / "tokens").write_text(f"{HASH.upper()}\n")
    settings = load(
        tmp_path,
        "",
        {
            "CREDENCE_VENDORS__ACME-EU__LABEL_KEYS_FILE": str(tmp_path / "keys"),
            "CREDENCE_VENDORS__ACME-EU__TOKEN_SHA256_FILE": str(tmp_path / "tokens"),
        },
    )
    vendor = settings.vendors["acme-eu"]
    assert vendor.label_key_bytes() == [KEY.encode(), OTHER_KEY.encode()]
    assert vendor.token_sha256 == [HASH]


def test_a_list_of_yaml_is_not_mistaken_for_a_label_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"vendors\.acme\.label_keys\.0"):
        load(tmp_path, "", {"CREDENCE_VENDORS__ACME__LABEL_KEYS": f"[{KEY}]"})


def test_label_keys_are_not_shown(tmp_path: Path) -> None:
    assert KEY not in repr(load(tmp_path, vendors(f"label_keys: [{KEY}]")))


def test_what_is_made_for_vendors_can_be_configured(tmp_path: Path) -> None:
    token, digest = new_token()
    assert digest == hashlib.sha256(token.encode()).hexdigest()
    key = new_label_key()
    settings = load(tmp_path, vendors(f"label_keys: ['{key}'], token_sha256: ['{digest}']"))
    assert settings.vendors["acme"].label_key_bytes() == [key.encode()]
    assert new_token()[0] != token
    assert new_label_key() != key
