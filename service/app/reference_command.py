"""`credence reference`: what "now" is compared with."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator

from service.app.wiring import connect, model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import ConfigurationError
from service.domain.times import in_words
from service.store.references import ReferenceStore, ReferenceWindow

_COMMAND_LINE = "the command line"


def _stores(options: argparse.Namespace) -> Iterator[tuple[str, ReferenceStore, Settings]]:
    """The reference of the named model, or of all models."""
    settings = load_settings(options.config, os.environ)
    if options.model is not None and options.model not in settings.models:
        known = ", ".join(sorted(settings.models))
        raise ConfigurationError([(options.model, f"unknown model; configured: {known}")], _COMMAND_LINE)
    connection = connect(settings)
    for name in settings.models if options.model is None else [options.model]:
        yield name, ReferenceStore(connection, model_keys(settings, name)), settings


def _line(model: str, window: ReferenceWindow | None, labels: int) -> str:
    if window is None:
        return f"{model}: first {labels} labels of every group"
    since = "" if math.isinf(window.since) else f"from {in_words(window.since)} "
    return f"{model}: predictions {since}until {in_words(window.until)}; set at {in_words(window.set_at)}"


def set_reference(options: argparse.Namespace) -> int:
    """Set the window of a model's reference, and print it."""
    now = time.time()
    window = ReferenceWindow(options.since, now if options.until is None else options.until, now)
    if window.since >= window.until:
        raise ConfigurationError([("--since", "must be earlier than --until")], _COMMAND_LINE)
    for _, store, _ in _stores(options):
        store.set(window)
    return show_reference(options)


def show_reference(options: argparse.Namespace) -> int:
    """Print the references."""
    for name, store, settings in _stores(options):
        print(_line(name, store.window(), settings.models[name].reference.labels))
    return 0


def clear_reference(options: argparse.Namespace) -> int:
    """Remove the window of a model's reference, and print the reference."""
    for _, store, _ in _stores(options):
        store.clear()
    return show_reference(options)
