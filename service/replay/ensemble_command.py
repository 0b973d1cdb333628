"""`credence replay --task ensemble`: its options, and what is done with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from service.domain.errors import RecordingError
from service.monitoring.ensembles import ITSELF
from service.replay.ensemble import EnsembleStudy, VotedItems
from service.replay.ensemble_summary import Found, draw_ensemble, ensemble_summary
from service.replay.one_class import chosen_class, label_counts, positive_classes
from service.replay.options import ENSEMBLE, INTERVAL
from service.replay.recording import Recording, load_recording
from service.replay.tables import Table
from service.replay.workers import Advance, Workers
from service.statistics.sample_sharing import MOST_MEMBERS


def ensemble_tables(
    recordings: Sequence[Recording], options: argparse.Namespace, crew: Workers, advance: Advance
) -> list[Table]:
    """Replay the recordings of all members together, and tell what was found.

    Raises:
        RecordingError: an option or a recording cannot be used for this task.
    """
    found = []
    for study in _studies(recordings, options):
        name = f"ensemble class {study.items.positive_class}"
        runs = {
            labels: study.run(labels, crew, advance(f"{name}, {labels} labels each", study.runs))
            for labels in study.labels
        }
        found.append(Found(study, runs))
    if options.plots:
        draw_ensemble(found, options.plots)
    return ensemble_summary(found)


def _studies(recordings: Sequence[Recording], options: argparse.Namespace) -> list[EnsembleStudy]:
    itself = None if options.ensemble is None else load_recording(options.ensemble)
    same_items([*recordings, *([] if itself is None else [itself])])
    _told_apart(recordings)
    pools = [_voted(recordings, itself, number) for number in positive_classes(recordings[0], options)]
    if chosen_class(options, recordings[0].classes) is None:
        pools = [items for items in pools if items.called.all()] or pools
    for items in pools:
        if not items.called.all():
            # The last of them: an ensemble calls nothing positive because its members do not.
            member = items.members[int(np.flatnonzero(items.called == 0)[-1])]
            raise RecordingError(
                member,
                f"it calls no item class {items.positive_class}, so it has no precision; choose another "
                "--positive-class",
            )
    fewest = min(pools, key=lambda items: int(items.called.min()))
    most = int(fewest.called.min())
    labels = label_counts(
        options,
        most,
        fewest.members[int(fewest.called.argmin())],
        f"it calls {most} items class {fewest.positive_class}",
    )
    return [
        EnsembleStudy(items, labels, options.runs, mass=options.interval or INTERVAL, seed=options.seed)
        for items in pools
    ]


def same_items(recordings: Sequence[Recording]) -> None:
    """Refuse recordings that cannot be of the same items in the same order.

    Raises:
        RecordingError: they are not.
    """
    first = recordings[0]
    for other in recordings[1:]:
        for what, one, its in (("items", first.size, other.size), ("classes", first.classes, other.classes)):
            if one != its:
                raise RecordingError(
                    other.name,
                    f"it has {its} {what}, {first.name} has {one}; members are recorded on the same items",
                )
        differing = np.flatnonzero(first.labels != other.labels)
        if len(differing):
            row = int(differing[0])
            raise RecordingError(
                other.name,
                f"its labels are not those of {first.name}: row {row} (counted from 0) is of class "
                f"{other.labels[row]} here and {first.labels[row]} there; record the same items in the same "
                "order",
            )


def _told_apart(recordings: Sequence[Recording]) -> None:
    """Refuse more members than can be told apart, or two of one name."""
    if len(recordings) >= MOST_MEMBERS:
        raise RecordingError(
            ENSEMBLE, f"there are {len(recordings)} members; judge {MOST_MEMBERS - 1} of them at the most"
        )
    names = [ITSELF, *(recording.name for recording in recordings)]
    for name in names[1:]:
        if names.count(name) > 1:
            raise RecordingError(name, "the ensemble or another member is called so too; rename the file")


def _voted(recordings: Sequence[Recording], itself: Recording | None, number: int) -> VotedItems:
    said = {recording.name: recording.predicted == number for recording in recordings}
    decision = None if itself is None else itself.predicted == number
    return VotedItems.of(number, said, recordings[0].labels == number, decision)
