"""`credence layouts`: traffic and pools that no process uses any more, and how to have them made anew."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.layouts import LayoutStore, StoredLayout

_ROW = "{:24}  {:8}  {:10}  {:>10}  {:>12}  {:>12}"


def _store(settings: Settings) -> LayoutStore:
    return LayoutStore(Connection(build_redis(settings.redis), settings.redis.prefix))


def _used(settings: Settings) -> set[tuple[str, str]]:
    """Model and layout of all that this configuration uses."""
    return {(name, model_keys(settings, name).layout) for name in settings.models}


def _rows(layouts: list[StoredLayout], used: set[tuple[str, str]]) -> Iterator[str]:
    yield _ROW.format("model", "layout", "", "partitions", "predictions", "pooled items")
    for each in layouts:
        use = "in use" if (each.model, each.layout) in used else "not in use"
        yield _ROW.format(
            each.model, each.layout, use, len(each.partitions), each.predictions, each.pooled
        ).rstrip()


def list_layouts(options: argparse.Namespace) -> int:
    """Show all layouts, and whether they are used."""
    settings = load_settings(options.config, os.environ)
    for row in _rows(_store(settings).all(), _used(settings)):
        print(row)
    return 0


def remove_layouts(options: argparse.Namespace) -> int:
    """Remove the layouts that were chosen, or say which would be removed."""
    settings = load_settings(options.config, os.environ)
    store, used = _store(settings), _used(settings)
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
        print(f"nothing was removed; {len(chosen)} would be with --yes")
    return 0
