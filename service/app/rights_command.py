"""`credence rights`: what every role must be allowed."""

from __future__ import annotations

import argparse
import os
from pkgutil import resolve_name

from service.app.options.parser import RIGHTS
from service.config.loader import load_settings


def rights(options: argparse.Namespace) -> int:
    """Print the rights at one server."""
    lines = resolve_name(RIGHTS[options.where])
    for line in lines(load_settings(options.config, os.environ)):
        print(line)
    return 0
