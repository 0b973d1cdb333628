"""`credence describe`: pages of the docs, from the code."""

from __future__ import annotations

import argparse
from pkgutil import resolve_name

from service.app.docgen.files import write_or_check
from service.app.options.parser import PAGES


def describe(options: argparse.Namespace) -> int:
    """Write a page, or check that it is current."""
    page = resolve_name(PAGES[options.page])
    return write_or_check(options.directory, {f"{options.page}.md": page()}, check=options.check)
