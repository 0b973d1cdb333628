"""`python -m helm` writes the chart's generated files; `--check` fails where one is not current."""

from __future__ import annotations

import argparse
import sys

from helm.pages import CHART, chart_files
from service.app.docgen.generated_files import add_check_option, write_or_check


def main() -> int:
    """Write or check; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m helm", description="Write the chart's generated files.")
    add_check_option(parser)
    copied = (*CHART.glob("files/prometheus/*"), *CHART.glob("files/dashboards/*"))
    on_disk = [str(path.relative_to(CHART)) for path in copied]
    return write_or_check(CHART, chart_files(), check=parser.parse_args().check, others=on_disk)


if __name__ == "__main__":
    sys.exit(main())
