"""`credence demo`: the whole demo, or one part of it. It needs scikit-learn, an extra."""

from __future__ import annotations

import argparse
import os

from rich.console import Console

from service.config.loader import load_settings
from service.demo.run import play_part, run_demo


def demo(options: argparse.Namespace) -> int:
    """Show the demo, or play a part of it."""
    if options.part is None:
        return run_demo(seconds=options.seconds, console=Console(), seed=options.seed)
    play_part(options.part, load_settings(options.config, os.environ), seconds=options.seconds)
    return 0
