"""`credence run`, `consume`, `schedule` and `serve`: one process, which plays one role or all."""

from __future__ import annotations

import argparse
import os
import signal

from prometheus_client import disable_created_metrics

from service.app.process import ALL_ROLES, Application, Role
from service.config.loader import load_settings
from service.telemetry.logs import configure_logs


def run(options: argparse.Namespace) -> int:
    """Play all roles."""
    return _play(options, ALL_ROLES)


def consume(options: argparse.Namespace) -> int:
    """Read predictions, or labels."""
    return _play(options, frozenset({options.what}))


def schedule(options: argparse.Namespace) -> int:
    """Take snapshots, and ask for labels where this process leads."""
    return _play(options, frozenset({"schedule"}))


def serve(options: argparse.Namespace) -> int:
    """Serve the status page, and vendors."""
    return _play(options, frozenset({"serve"}))


def _play(options: argparse.Namespace, roles: frozenset[Role]) -> int:
    # A second series for every counter, which nothing here reads; the library left the call untyped.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    settings = load_settings(options.config, os.environ)
    configure_logs(settings.log_level)
    application = Application(settings, roles)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: application.stop())
    return application.run()
