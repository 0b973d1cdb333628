"""How this program is called in what it tells people to run next."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

NAME = "credence"


def own_command(called: str | None = None) -> str:
    """`credence`, or the path that it was called by if the PATH does not lead to it.

    Args:
        called: path of this program; that of this process if absent.
    """
    path = Path(sys.argv[0] if called is None else called)
    if path.name != NAME:  # as `python -m`, or within a test
        return NAME
    found = shutil.which(NAME)
    is_found = found is not None and Path(found).resolve() == path.resolve()
    return NAME if is_found else shlex.quote(str(path))
