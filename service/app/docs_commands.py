"""`credence contract` and `credence describe`: pages of the docs, from the code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name

from service.app.docgen.contract import contract_files
from service.app.options.parser import PAGES


def contract(options: argparse.Namespace) -> int:
    """Write the message contract, or check that it is current."""
    return _write_or_check(options.directory, contract_files(), check=options.check)


def describe(options: argparse.Namespace) -> int:
    """Write a page, or check that it is current."""
    page = resolve_name(PAGES[options.page])
    return _write_or_check(options.directory, {f"{options.page}.md": page()}, check=options.check)


def _write_or_check(directory: Path, files: Mapping[str, str], *, check: bool) -> int:
    stale = []
    for name, text in files.items():
        path = directory / name
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    for path in stale:
        print(f"{path} is not current; write it again without --check", file=sys.stderr)
    return 1 if stale else 0
