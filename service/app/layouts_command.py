"""`credence layouts`: list stored traffic and pools, and remove those that are not used."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from service.app.wiring import connect, model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.store.layouts import LayoutStore, StoredLayout

_ROW = "{:24}  {:8}  {:10}  {:>10}  {:>12}  {:>12}"


def _used(settings: Settings) -> set[tuple[str, str]]:
    """Model and layout of everything that this configuration uses."""
    return {(name, model_keys(settings, name).layout) for name in settings.models}


def _rows(layouts: list[StoredLayout], used: set[tuple[str, str]]) -> Iterator[str]:
    yield _ROW.format("model", "layout", "", "partitions", "predictions", "pooled items")
    for each in layouts:
        use = "in use" if (each.model, each.layout) in used else "not in use"
        yield _ROW.format(
            each.model, each.layout, use, len(each.partitions), each.predictions, each.pooled
        ).rstrip()


def list_layouts(options: argparse.Namespace) -> int:
    """Print all layouts, and whether they are used."""
    settings = load_settings(options.config, os.environ)
    for row in _rows(LayoutStore(connect(settings)).all(), _used(settings)):
        print(row)
    return 0


def remove_layouts(options: argparse.Namespace) -> int:
    """Remove the chosen layouts, or print which would be removed."""
    settings = load_settings(options.config, os.environ)
    store, used = LayoutStore(connect(settings)), _used(settings)
    chosen = [
        each
        for each in store.all()
        if ((each.model, each.layout) in used) == options.in_use and options.model in (None, each.model)
    ]
    for row in _rows(chosen, used):
        print(row)
    if options.yes:
        store.remove(chosen)
        print(f"{len(chosen)} removed")
    else:
        print(f"dry run: {len(chosen)} would be removed with --yes")
    return 0
