"""`credence contract` and `credence describe`: write generated files, or check that they are current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

PAGES: Final[Mapping[str, str]] = {
    "configuration": "service.app.docgen.configuration:configuration_page",
    "metrics": "service.app.docgen.metrics:metrics_page",
    "rights": "service.app.docgen.rights:rights_page",
}
"""What `describe` writes: the function that returns the text of each page."""


def contract(options: argparse.Namespace) -> int:
    """Write the message contract, or check that it is current."""
    from service.app.docgen.contract import contract_files  # noqa: PLC0415 - with FastAPI

    return write_or_check(options.directory, contract_files(), check=options.check)


def describe(options: argparse.Namespace) -> int:
    """Write a page, or check that it is current."""
    page = resolve_name(PAGES[options.page])
    return write_or_check(options.directory, {f"{options.page}.md": page()}, check=options.check)


def page_template(name: str) -> str:
    """Text of a file in `pages/`: prose with fields in braces for `str.format`, or an example."""
    return resources.files("service.app.docgen").joinpath("pages", name).read_text(encoding="utf-8")


def add_check_option(parser: argparse.ArgumentParser) -> None:
    """Add `--check` to a command that writes files."""
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the files are not what would be written"
    )


def write_or_check(
    directory: Path, files: Mapping[str, str], *, check: bool, others: Iterable[str] = ()
) -> int:
    """Write the files and print their paths, or with `check` name those that differ; returns the exit code.

    Args:
        directory: where the files belong.
        files: their texts, by path in the directory.
        check: write nothing, and fail if a file is missing or differs.
        others: files in the directory; any that is not among `files` is an error.
    """
    stale = sorted(set(others) - files.keys())
    for name, text in files.items():
        path = directory / name
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(_shown(path))
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        print(
            f"{_shown(directory / name)} is not current; write it again without --check",
            file=sys.stderr,
        )
    return 1 if stale else 0


def _shown(path: Path) -> Path:
    """The path as people type it: relative where it is below the current directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
