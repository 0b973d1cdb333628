"""`credence layouts`: traffic and pools that no process uses any more, and how to have them made anew."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.layouts import LayoutStore, StoredLayout

DESCRIPTION = """\
Redis keeps traffic and pool of a model under a layout: a fingerprint of its classes and of the half-life of
traffic. Change one of these and a new layout begins; the old one stays, so that the change can be taken back,
until it is removed here.

`list` shows all layouts. `remove` removes those that this configuration does not use; with --in-use those
that it does use instead: end all predictions consumers before, and start them afterwards, and they make
traffic and pool anew from what Kafka retains. Requests and labels are no part of a layout. It only tells what
it would do unless --yes is given.
"""

_ROW = "{:24}  {:8}  {:10}  {:>10}  {:>12}  {:>12}"


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "layouts",
        help="look at stored traffic and pools, and remove what is not used",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="show them", parents=[configured])
    listing.set_defaults(command=_list)
    removing = actions.add_parser("remove", help="remove them", parents=[configured])
    removing.add_argument("--model", metavar="NAME", help="of this model alone; it need not be configured")
    removing.add_argument(
        "--in-use",
        action="store_true",
        help="those that this configuration uses, to have traffic and pool made anew from Kafka",
    )
    really = removing.add_mutually_exclusive_group()
    really.add_argument("--dry-run", action="store_true", help="tell what would be removed (the default)")
    really.add_argument("--yes", action="store_true", help="remove")
    removing.set_defaults(command=_remove)


def _store(settings: Settings) -> LayoutStore:
    return LayoutStore(Connection(build_redis(settings.redis), settings.redis.prefix))


def _used(settings: Settings) -> set[tuple[str, str]]:
    """Model and layout of all that this configuration uses."""
    return {(name, model_keys(settings, name, settings.cell_space(name)).layout) for name in settings.models}


def _rows(layouts: list[StoredLayout], used: set[tuple[str, str]]) -> Iterator[str]:
    yield _ROW.format("model", "layout", "", "partitions", "predictions", "pooled items")
    for each in layouts:
        use = "in use" if (each.model, each.layout) in used else "not in use"
        yield _ROW.format(
            each.model, each.layout, use, len(each.partitions), each.predictions, each.pooled
        ).rstrip()


def _list(options: argparse.Namespace) -> int:
    settings = load_settings(options.config, os.environ)
    for row in _rows(_store(settings).all(), _used(settings)):
        print(row)
    return 0


def _remove(options: argparse.Namespace) -> int:
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
