"""`credence run`, `consume`, `schedule` and `serve`: one process, which plays one role or all."""

from __future__ import annotations

import argparse
import os
import signal

from prometheus_client import disable_created_metrics

from service.app.process import Application
from service.config.loader import load_settings
from service.telemetry.logs import configure_logs


def play(options: argparse.Namespace) -> int:
    """Play the roles of the command until a signal stops the process."""
    # A second series for every counter, which nothing here reads; the library left the call untyped.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    settings = load_settings(options.config, os.environ)
    configure_logs(settings.log_level)
    application = Application(settings, options.roles)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: application.stop())
    return application.run()
