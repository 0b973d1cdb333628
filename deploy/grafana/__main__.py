"""`python -m deploy.grafana` writes the dashboards' JSON; `--check` fails where it is not current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.grafana.render import dashboard_files
from service.app.docgen.generated_files import add_check_option, write_or_check

DIRECTORY = Path(__file__).parent / "dashboards"


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.grafana", description="Write the dashboards' JSON."
    )
    add_check_option(parser)
    check = parser.parse_args().check
    on_disk = [path.name for path in DIRECTORY.glob("*.json")]
    return write_or_check(DIRECTORY, dashboard_files(), check=check, others=on_disk)


if __name__ == "__main__":
    sys.exit(main())
