"""What all studies share: options, and the way from recordings to printed tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from service.domain.errors import RecordingError
from service.replay.command import make_directory
from service.replay.digits import digits_recordings
from service.replay.options import DIGITS, add_output, add_size
from service.replay.recording import Recording, load_recording
from service.replay.tables import Table, print_tables
from service.replay.workers import Workers, workers

Tables = Callable[[Sequence[Recording], argparse.Namespace, Workers], Iterable[Table]]
"""Makes tables of recordings, with the options that were given."""


def study_parser(description: str) -> argparse.ArgumentParser:
    """A parser of the options that all studies take."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="recorded predictions as of `credence replay`, or `digits`"
    )
    add_size(parser)
    add_output(parser)
    return parser


def run_study(tables: Tables, options: argparse.Namespace) -> None:
    """Load what was recorded, and print the tables that are made of it.

    Raises:
        RecordingError: an option or a file cannot be used.
    """
    make_directory(options.plots)
    recordings = [recording for name in options.files for recording in _recordings(name)]
    with workers(options.jobs, for_programs=options.json) as crew:
        made = list(tables(recordings, options, crew))
    print_tables(made, as_json=options.json, as_markdown=options.markdown)


def main(tables: Tables, options: argparse.Namespace) -> None:
    """Run a study as a command, which exits with one line about what cannot be used."""
    try:
        run_study(tables, options)
    except RecordingError as error:
        sys.exit(str(error))


def _recordings(name: str) -> list[Recording]:
    return digits_recordings() if name == DIGITS else [load_recording(Path(name))]
