"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pkgutil import resolve_name

from service.app.parser import build_parser
from service.domain.errors import ConfigurationError, CredenceError

EXIT_FAILED = 1
EXIT_BAD_CONFIGURATION = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    options = build_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = resolve_name(options.command)
    try:
        return command(options)
    except ConfigurationError as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_BAD_CONFIGURATION
    except (CredenceError, OSError) as error:
        print(f"credence: {error}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
