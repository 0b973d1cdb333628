"""`credence replay --task drift --after`: its options, and what is done with them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from service.domain.errors import RecordingError
from service.replay.corruption import CORRUPTIONS
from service.replay.digits import digits_recordings
from service.replay.inputs import CLASSES_SHIFT, LABELS_ALONE, NO_CHANGE, Change, Items
from service.replay.inputs_study import InputsStudy
from service.replay.inputs_summary import draw_inputs, inputs_summary
from service.replay.options.inputs import ALPHA, BINNING, BINS, GROUPS, HARD, PREDICTIONS
from service.replay.options.recordings import DIGITS
from service.replay.progress import Advance
from service.replay.recording import Recording, load_recording
from service.replay.study import Workers
from service.replay.tables import Table


def inputs_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers, advance: Advance
) -> list[Table]:
    """Replay what was recorded before and after a change, and tell what was found.

    Args:
        recordings: of one FILE, before the change: one, or those of the digits.
        options: that were given.
        crew: computes.
        advance: tells how far the runs are.

    Raises:
        RecordingError: there are several files, or one cannot be used.
    """
    if len(options.files) != 1:
        raise RecordingError(
            "--after", f"it is of one recording, and there are {len(options.files)}; name one"
        )
    names = list(dict.fromkeys(options.after))
    after = {name: _recorded_after(name, options.files[0]) for name in names if name != HARD}
    tables: list[Table] = []
    for place, before in enumerate(recordings):
        items = Items.of(
            before,
            [each[place] for each in after.values()],
            bin_count=options.score_bins or BINS,
            binning=options.binning or BINNING,
        )
        study = InputsStudy(
            items=items,
            groups=options.groups or GROUPS,
            predictions=options.per_label or PREDICTIONS,
            alpha=options.alpha or ALPHA,
            runs=options.runs,
            seed=options.seed,
        )
        found = [
            (change, study.run(change, crew, advance(f"{before.name} {change}", study.runs)))
            for change in changes(items, names, options.mixed or 1.0)
        ]
        if options.plots:
            draw_inputs(study, found, options.plots)
        tables += inputs_summary(study, found)
    return tables


def changes(items: Items, names: Sequence[str], mixed: float) -> list[Change]:
    """None, those that are asked for, one that harms nothing, and one that no input shows.

    The last one makes the group as inaccurate as the first of those that are asked for and harm.

    Args:
        items: of the recording before, and of those after in the order of the names.
        names: of recordings; `HARD` has none.
        mixed: share of the group's items that change, above 0 and at most 1.
    """
    told = "" if mixed == 1 else f", {100 * mixed:g} %"
    asked, number = [], 0
    for name, short in zip(names, _short(names), strict=True):
        if name == HARD:
            asked.append(items.hard(f"{short}{told}", mixed))
        else:
            number += 1
            asked.append(items.of_recording(f"{short}{told}", number, mixed))
    fallen = (items.labels_alone(items.accuracy(change)) for change in asked)
    silent = next((change for change in fallen if change is not None), None)
    return [change for change in (items.healthy, *asked, items.classes_shift(), silent) if change is not None]


def _short(names: Sequence[str]) -> list[str]:
    """How changes are told: by the names of files, and by whole paths where a name is not theirs alone."""
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
        return digits_recordings(name)
    if name in CORRUPTIONS:
        raise RecordingError("--after", f"{name} is of {DIGITS} alone; name a second recording, or {HARD}")
    return [load_recording(Path(name))]
