"""Decoders are made from the settings, and what they need is looked for at the start."""

from __future__ import annotations

import sys

import pytest

from service.app.format_wiring import label_text, prediction_formats
from service.config.settings import Settings
from service.domain.errors import ConfigurationError

REGISTRY = {"schema_registry": {"url": "http://127.0.0.1:1"}}


def settings(**kafka: object) -> Settings:
    return Settings.model_validate({"kafka": kafka, "models": {"m": {"classes": ["a", "b"]}}})


@pytest.mark.parametrize("package", ["fastavro", "google.protobuf", "grpc_tools"])
def test_a_package_that_a_registry_needs_is_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for make in (prediction_formats, label_text):
        with pytest.raises(
            ConfigurationError, match=rf"\({package}\); run: pip install 'credence\[schemas\]'"
        ):
            make(settings(**REGISTRY))


def test_without_a_registry_no_package_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("fastavro", "google.protobuf", "grpc_tools"):
        monkeypatch.setitem(sys.modules, package, None)
    assert prediction_formats(settings())


def test_a_registry_that_is_away_does_not_keep_a_process_from_starting() -> None:
    assert prediction_formats(settings(**REGISTRY))
    assert label_text(settings(**REGISTRY))
