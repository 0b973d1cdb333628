"""`python -m helm` writes the chart's generated files; `--check` fails where one is not current."""

from __future__ import annotations

import argparse
import sys

from helm.pages import CHART, chart_files


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m helm", description="Write the chart's generated files.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the files are not what would be written"
    )
    check = parser.parse_args().check
    stale = []
    for name, text in chart_files().items():
        path = CHART / name
        if not check:
            path.write_text(text, encoding="utf-8")
            print(path)
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
    for path in stale:
        print(f"{path} is not current; write it again without --check", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
