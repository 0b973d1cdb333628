"""Generated files: written, or checked to be current."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def write_or_check(directory: Path, files: Mapping[str, str], *, check: bool) -> int:
    """Write files, or only look whether they are as they would be written; the exit code.

    Args:
        directory: where they are.
        files: text by name.
        check: whether nothing is written.
    """
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
