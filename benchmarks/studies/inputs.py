"""How soon inputs that change are detected without labels, and what labels confirm.

`python -m benchmarks.studies.inputs digits --after noise --runs 20 --markdown` makes the tables of
docs/drift.md.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, get_args

from benchmarks.studies import running
from benchmarks.studies.corruption import CORRUPTIONS, corrupted_recordings
from benchmarks.studies.inputs_items import CLASSES_SHIFT, LABELS_ALONE, NO_CHANGE, Change, Items
from benchmarks.studies.inputs_study import InputsStudy
from benchmarks.studies.inputs_summary import draw_inputs, inputs_summary
from benchmarks.studies.inputs_watched import HEALTHY, ROUND
from service.domain.errors import RecordingError
from service.replay.options import DIGITS, Binning, positive, real, share
from service.replay.recording import Recording, load_recording
from service.replay.tables import Table
from service.replay.workers import Workers

HARD: Final = "hard"
"""Stands for the items with the lowest scores where a recording would be named."""


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    parser = running.study_parser(
        f"Streams of predictions of groups, one of which changes after {HEALTHY * ROUND:,} of them, so that\n"
        "scores, predicted classes and labels change together: how soon that is detected without labels,\n"
        "what scores promise then, and how soon labels confirm it, with a share of them aimed and without."
    )
    parser.add_argument(
        "--after",
        action="append",
        required=True,
        metavar="AFTER",
        help="what the group's inputs become, repeatable: a second recording of the same classes by the same "
        f"model; of `{DIGITS}` {', '.join(CORRUPTIONS)}: its images with that done to them; of any FILE "
        f"{HARD}: the half of its own items with the lowest scores",
    )
    parser.add_argument(
        "--mixed",
        type=part,
        default=1.0,
        metavar="SHARE",
        help="of the group's items, those that are (default: all)",
    )
    parser.add_argument(
        "--groups",
        type=positive,
        default=10,
        metavar="N",
        help="that share the traffic alike (default: %(default)s)",
    )
    parser.add_argument(
        "--per-label",
        type=positive,
        default=100,
        metavar="N",
        help="predictions of all groups for each of which a label comes (default: %(default)s)",
    )
    parser.add_argument("--alpha", type=share, default=0.05, help="of evidence (default: %(default)s)")
    parser.add_argument(
        "--score-bins", type=positive, default=10, metavar="B", help="default: %(default)s, as in the service"
    )
    parser.add_argument(
        "--binning",
        choices=get_args(Binning),
        default="equal_width",
        help="default: %(default)s, as in the service",
    )
    return parser


def part(text: str) -> float:
    """A number above 0 that is 1 at the most."""
    number = real(text)
    if not 0 < number <= 1:
        raise ArgumentTypeError(f"'{text}' is not a number above 0 that is 1 at the most")
    return number


def inputs_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers
) -> Iterator[Table]:
    """Tables of what was recorded before and after a change.

    Args:
        recordings: of one FILE, before the change: one, or those of the digits.
        options: that were given.
        crew: computes.

    Raises:
        RecordingError: there are several files, or one cannot be used.
    """
    if len(options.files) != 1:
        raise RecordingError(
            "--after", f"it is of one recording, and there are {len(options.files)}; name one"
        )
    names = list(dict.fromkeys(options.after))
    after = {name: _recorded_after(name, options.files[0]) for name in names if name != HARD}
    for place, before in enumerate(recordings):
        items = Items.of(
            before,
            [each[place] for each in after.values()],
            bin_count=options.score_bins,
            binning=options.binning,
        )
        study = InputsStudy(
            items=items,
            groups=options.groups,
            predictions=options.per_label,
            alpha=options.alpha,
            runs=options.runs,
            seed=options.seed,
        )
        found = [
            (change, study.run(change, crew, f"{before.name} {change}"))
            for change in changes(items, names, options.mixed)
        ]
        if options.plots:
            draw_inputs(study, found, options.plots)
        yield from inputs_summary(study, found)


def changes(items: Items, names: Sequence[str], mixed: float) -> list[Change]:
    """None, those that are asked for, one that harms nothing, and one that no input shows.

    The last one makes the group as inaccurate as the first of those that are asked for and harm.

    Args:
        items: of the recording before, and of those after in the order of the names.
        names: of recordings; `HARD` has none.
        mixed: share of the group's items that change, above 0 and at most 1.
    """
    results = "" if mixed == 1 else f", {100 * mixed:g}%"
    asked, number = [], 0
    for name, short in zip(names, _short(names), strict=True):
        if name == HARD:
            asked.append(items.hard(f"{short}{results}", mixed))
        else:
            number += 1
            asked.append(items.of_recording(f"{short}{results}", number, mixed))
    fallen = (items.labels_alone(items.accuracy(change)) for change in asked)
    silent = next((change for change in fallen if change is not None), None)
    return [change for change in (items.healthy, *asked, items.classes_shift(), silent) if change is not None]


def _short(names: Sequence[str]) -> list[str]:
    """Names of changes: the names of files, or whole paths where several files share a name."""
    stems = [Path(name).stem for name in names]
    taken = Counter((*stems, NO_CHANGE, CLASSES_SHIFT, LABELS_ALONE))
    return [stem if taken[stem] == 1 else name for name, stem in zip(names, stems, strict=True)]


def _recorded_after(name: str, before: str) -> list[Recording]:
    """By the models whose recordings there are before the change, in the same order.

    Raises:
        RecordingError: nothing of the kind is known, or the file cannot be used.
    """
    if before == DIGITS:
        if name not in CORRUPTIONS:
            known = ", ".join((*CORRUPTIONS, HARD))
            raise RecordingError("--after", f"of {DIGITS} {known} are known, not {name}; choose one of them")
        return corrupted_recordings(name)
    if name in CORRUPTIONS:
        raise RecordingError("--after", f"{name} is of {DIGITS} alone; name a second recording, or {HARD}")
    return [load_recording(Path(name))]


if __name__ == "__main__":
    running.main(inputs_tables, parser().parse_args())
