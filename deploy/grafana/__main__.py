"""`python -m deploy.grafana` writes the dashboards' JSON; `--check` fails where it is not current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.grafana.render import dashboard_files

DIRECTORY = Path(__file__).parent / "dashboards"


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.grafana", description="Write the dashboards' JSON."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the files are not what would be written"
    )
    check = parser.parse_args().check
    files = dashboard_files()
    strange = {path.name for path in DIRECTORY.glob("*.json")} - set(files)
    stale = sorted(strange)
    for name, text in files.items():
        path = DIRECTORY / name
        if not check:
            path.write_text(text, encoding="utf-8")
            print(path)
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        print(f"{DIRECTORY / name} is not current; write it again without --check", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
