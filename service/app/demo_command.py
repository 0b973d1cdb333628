"""`credence demo`: a whole demo, or one part of one. Its broker, and scikit-learn, are an extra."""

from __future__ import annotations

import argparse
import os

from rich.console import Console

from service.config.loader import load_settings
from service.demo.person.run import run_person_demo
from service.demo.rare.run import run_rare_demo
from service.demo.run import play_part, run_demo
from service.domain.errors import ConfigurationError

ME = "me"
_LABELS = 60


def demo(options: argparse.Namespace) -> int:
    """Show the demo, or play a part of it."""
    _refuse_combinations(options)
    if options.part is None:
        return _whole(options)
    play_part(options.part, load_settings(options.config, os.environ), seconds=options.seconds)
    return 0


def _refuse_combinations(options: argparse.Namespace) -> None:
    """Raise `ConfigurationError` if one option is of another demo than another option."""
    if options.rare and options.part is not None:
        raise ConfigurationError([("--rare", "a part is of the demo without it; leave one of the two out")])
    if options.labeller == ME and (options.rare or options.part is not None):
        problem = "you label the whole demo of digits; leave out --rare and the part"
        raise ConfigurationError([(f"--labeller {ME}", problem)])
    if options.repair and (options.rare or options.labeller == ME or options.part is not None):
        problem = "only the whole demo of digits with simulated labels has a repair; leave the others out"
        raise ConfigurationError([("--repair", problem)])
    if options.labels is not None and options.labeller != ME:
        raise ConfigurationError([("--labels", f"the number of your own labels; add --labeller {ME}")])


def _whole(options: argparse.Namespace) -> int:
    console, seconds, seed = Console(), options.seconds, options.seed
    if options.labeller == ME:
        labels = _LABELS if options.labels is None else options.labels
        return run_person_demo(labels=labels, seconds=seconds, console=console, seed=seed)
    if options.rare:
        return run_rare_demo(seconds=seconds, console=console, seed=seed)
    return run_demo(seconds=seconds, console=console, seed=seed, repair=options.repair)
