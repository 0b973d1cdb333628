"""`credence demo`: a whole demo, or one part of one. Its broker, and scikit-learn, are an extra."""

from __future__ import annotations

import argparse
import os

from rich.console import Console

from service.config.loader import load_settings
from service.demo.rare.run import run_rare_demo
from service.demo.run import play_part, run_demo
from service.domain.errors import ConfigurationError


def demo(options: argparse.Namespace) -> int:
    """Show the demo, or play a part of it."""
    if options.part is None:
        run = run_rare_demo if options.rare else run_demo
        return run(seconds=options.seconds, console=Console(), seed=options.seed)
    if options.rare:
        raise ConfigurationError([("--rare", "a part is of the demo without it; leave one of the two out")])
    play_part(options.part, load_settings(options.config, os.environ), seconds=options.seconds)
    return 0
