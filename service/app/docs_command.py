"""`credence contract` and `credence describe`: files of the docs that are generated from the code."""

from __future__ import annotations

import argparse
from pkgutil import resolve_name

from service.app.docgen.generated_files import write_or_check
from service.app.options.parser import PAGES


def contract(options: argparse.Namespace) -> int:
    """Write the message contract, or check that it is current."""
    from service.app.docgen.contract import contract_files  # noqa: PLC0415 - with FastAPI

    return write_or_check(options.directory, contract_files(), check=options.check)


def describe(options: argparse.Namespace) -> int:
    """Write a page, or check that it is current."""
    page = resolve_name(PAGES[options.page])
    return write_or_check(options.directory, {f"{options.page}.md": page()}, check=options.check)
