"""`credence reference`: what "now" is compared with."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator
from typing import Any

from service.app.wiring import model_keys
from service.config.loader import load_settings
from service.config.settings import Settings
from service.domain.errors import ConfigurationError
from service.domain.times import HOW_TIMES_ARE_WRITTEN, in_words, moment
from service.store.client import build_redis
from service.store.connection import Connection
from service.store.references import ReferenceStore, ReferenceWindow

DESCRIPTION = """\
A model's reference is the time that "now" is compared with. Unless a window is set, it is the first labels of
every group (models.<name>.reference.labels), and for the drift of unlabelled traffic the first predictions
(models.<name>.drift.reference_predictions).

`set` makes it the predictions of a window of time. Those that are made after it are "now", and evidence
begins anew with them: set it after a repair, or when a new version is deployed. Choose it by when something
was deployed, never by what its labels say: compared with a time that was chosen because it looks good, what
follows looks worse than it is. `clear` takes the window back. Nothing else is changed; every process follows
with its next look.
"""

EPILOG = f"""\
{HOW_TIMES_ARE_WRITTEN}

examples:
  credence reference set animals                                   all until now
  credence reference set animals --since 2026-01-31 --until 2026-02-07
  credence reference set animals --since 2h --until 2026-12-24     from the repair two hours ago until then
  credence reference show
"""

_COMMAND_LINE = "the command line"


def add_parser(commands: Any, configured: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: of the command line.
        configured: has the option that names the configuration.
    """
    parser = commands.add_parser(
        "reference",
        help='show or set what "now" is compared with',
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    setting = actions.add_parser("set", help="make it a window of time", parents=[configured])
    setting.add_argument("model", metavar="MODEL", help="whose")
    setting.add_argument(
        "--since", type=moment, default=-math.inf, metavar="TIME", help="predicted then or later"
    )
    setting.add_argument("--until", type=moment, metavar="TIME", help="predicted before (default: now)")
    setting.set_defaults(command=_set)
    showing = actions.add_parser("show", help="show it", parents=[configured])
    showing.add_argument("model", metavar="MODEL", nargs="?", help="whose (default: of all models)")
    showing.set_defaults(command=_show)
    clearing = actions.add_parser(
        "clear", help="let it be the first labels of every group again", parents=[configured]
    )
    clearing.add_argument("model", metavar="MODEL", help="whose")
    clearing.set_defaults(command=_clear)


def _stores(options: argparse.Namespace) -> Iterator[tuple[str, ReferenceStore, Settings]]:
    """Of the model that is named, or of all."""
    settings = load_settings(options.config, os.environ)
    if options.model is not None and options.model not in settings.models:
        known = ", ".join(sorted(settings.models))
        raise ConfigurationError([(options.model, f"is no model; there are: {known}")], _COMMAND_LINE)
    connection = Connection(build_redis(settings.redis), settings.redis.prefix)
    for name in settings.models if options.model is None else [options.model]:
        keys = model_keys(settings, name, settings.cell_space(name))
        yield name, ReferenceStore(connection, keys), settings


def _line(model: str, window: ReferenceWindow | None, labels: int) -> str:
    if window is None:
        return f"{model}: the first {labels} labels of every group"
    since = "" if math.isinf(window.since) else f"from {in_words(window.since)} "
    return f"{model}: predicted {since}until {in_words(window.until)}; set {in_words(window.set_at)}"


def _set(options: argparse.Namespace) -> int:
    now = time.time()
    window = ReferenceWindow(options.since, now if options.until is None else options.until, now)
    if window.since >= window.until:
        raise ConfigurationError([("--since", "must be earlier than --until")], _COMMAND_LINE)
    for _, store, _ in _stores(options):
        store.set(window)
    return _show(options)


def _show(options: argparse.Namespace) -> int:
    for name, store, settings in _stores(options):
        print(_line(name, store.window(), settings.models[name].reference.labels))
    return 0


def _clear(options: argparse.Namespace) -> int:
    for _, store, _ in _stores(options):
        store.clear()
    return _show(options)
