"""`credence layouts`, `reference` and `reset`: show and change what Redis keeps."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator

from service.app.wiring import connect, model_keys
from service.config.loader import load_settings
from service.domain.errors import ConfigurationError
from service.domain.times import in_words
from service.monitoring.pipeline_problems import reset_sentence
from service.store.layouts import LayoutStore, StoredLayout
from service.store.references import ReferenceStore, ReferenceWindow
from service.store.resets import ResetStore

_COMMAND_LINE = "the command line"
_ROW = "{:24}  {:8}  {:10}  {:>10}  {:>12}  {:>12}"


def list_layouts(options: argparse.Namespace) -> int:
    """Print all layouts, and whether this configuration uses them."""
    for row in _rows(_layouts(options)[1]):
        print(row)
    return 0


def remove_layouts(options: argparse.Namespace) -> int:
    """Remove the chosen layouts, or print which would be removed."""
    store, layouts = _layouts(options)
    chosen = [
        (layout, is_used)
        for layout, is_used in layouts
        if is_used == options.in_use and options.model in (None, layout.model)
    ]
    for row in _rows(chosen):
        print(row)
    if options.yes:
        store.remove([layout for layout, _ in chosen])
        print(f"{len(chosen)} removed")
    else:
        print(f"dry run: {len(chosen)} would be removed with --yes")
    return 0


def _layouts(options: argparse.Namespace) -> tuple[LayoutStore, list[tuple[StoredLayout, bool]]]:
    """All layouts, and whether this configuration uses them."""
    settings = load_settings(options.config, os.environ)
    used = {(name, model_keys(settings, name).layout) for name in settings.models}
    store = LayoutStore(connect(settings))
    return store, [(layout, (layout.model, layout.layout) in used) for layout in store.all()]


def _rows(layouts: list[tuple[StoredLayout, bool]]) -> Iterator[str]:
    yield _ROW.format("model", "layout", "", "partitions", "predictions", "pooled items")
    for each, is_used in layouts:
        use = "in use" if is_used else "not in use"
        row = _ROW.format(each.model, each.layout, use, len(each.partitions), each.predictions, each.pooled)
        yield row.rstrip()


def set_reference(options: argparse.Namespace) -> int:
    """Set the window of a model's reference, and print it."""
    now = time.time()
    window = ReferenceWindow(options.since, now if options.until is None else options.until, now)
    if window.since >= window.until:
        raise ConfigurationError([("--since", "must be earlier than --until")], _COMMAND_LINE)
    for _, store, _ in _references(options):
        store.set(window)
    return show_reference(options)


def show_reference(options: argparse.Namespace) -> int:
    """Print the references."""
    for name, store, labels in _references(options):
        print(_line(name, store.window(), labels))
    return 0


def clear_reference(options: argparse.Namespace) -> int:
    """Remove the window of a model's reference, and print the reference."""
    for _, store, _ in _references(options):
        store.clear()
    return show_reference(options)


def show_reset(options: argparse.Namespace) -> int:
    """Print the loss of data that nobody has acknowledged."""
    reset = ResetStore(connect(load_settings(options.config, os.environ))).reset()
    print("Redis has not lost data" if reset is None else reset_sentence(reset, time.time()))
    return 0


def acknowledge_reset(options: argparse.Namespace) -> int:
    """Remove the loss of data, and print it."""
    reset = ResetStore(connect(load_settings(options.config, os.environ))).acknowledge()
    print(
        "Redis has not lost data" if reset is None else f"acknowledged: {reset_sentence(reset, time.time())}"
    )
    return 0


def _references(options: argparse.Namespace) -> Iterator[tuple[str, ReferenceStore, int]]:
    """The reference of the named model or of all models; with its labels unless a window is set."""
    settings = load_settings(options.config, os.environ)
    if options.model is not None and options.model not in settings.models:
        known = ", ".join(sorted(settings.models))
        raise ConfigurationError([(options.model, f"unknown model; configured: {known}")], _COMMAND_LINE)
    connection = connect(settings)
    for name in settings.models if options.model is None else [options.model]:
        store = ReferenceStore(connection, model_keys(settings, name))
        yield name, store, settings.models[name].reference.labels


def _line(model: str, window: ReferenceWindow | None, labels: int) -> str:
    if window is None:
        return f"{model}: first {labels} labels of every group"
    since = "" if math.isinf(window.since) else f"from {in_words(window.since)} "
    return f"{model}: predictions {since}until {in_words(window.until)}; set at {in_words(window.set_at)}"
