"""`credence replay --task performance`: its options, and what is done with them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from service.domain.errors import RecordingError
from service.replay.one_class import SECOND, TWO_CLASSES, positive_classes
from service.replay.options import INTERVAL, LABELS, PERFORMANCE
from service.replay.performance import BinaryScores, PerformanceStudy
from service.replay.performance_summary import Found, draw_performance, performance_summary
from service.replay.recording import Recording
from service.replay.tables import Table
from service.replay.workers import Advance, Workers


def performance_tables(
    recording: Recording, options: argparse.Namespace, crew: Workers, advance: Advance
) -> list[Table]:
    """Replay a recording, and tell what was found.

    Raises:
        RecordingError: an option or the recording cannot be used for this task.
    """
    found = {}
    for study in list(_studies(recording, options)):
        number = study.scores.positive_class
        found[number] = Found(
            study,
            {
                labels: study.run(
                    labels, crew, advance(f"{recording.name} class {number}, {labels} labels", study.runs)
                )
                for labels in study.labels
            },
        )
    if options.plots:
        draw_performance(recording.name, found, options.plots)
    return performance_summary(recording.name, found)


def _studies(recording: Recording, options: argparse.Namespace) -> Iterator[PerformanceStudy]:
    labels, threshold = _labels(recording, options), _threshold(options)
    for number in positive_classes(recording, options):
        yield PerformanceStudy(
            scores=_scores(recording, number, options),
            labels=labels,
            runs=options.runs,
            threshold=threshold,
            target=options.target,
            mass=options.interval or INTERVAL,
            seed=options.seed,
        )


def _labels(recording: Recording, options: argparse.Namespace) -> tuple[int, ...]:
    if options.labels is None:
        return tuple(count for count in LABELS[PERFORMANCE] if count <= recording.size) or (recording.size,)
    labels: tuple[int, ...] = options.labels
    if labels[-1] > recording.size:
        raise RecordingError(
            recording.name,
            f"it has {recording.size} items, the most labels are {labels[-1]}; lower --labels",
        )
    return labels


def _threshold(options: argparse.Namespace) -> float:
    if options.threshold is None:
        return 0.0 if options.decision_values else 0.5
    threshold: float = options.threshold
    if not options.decision_values and not 0 <= threshold <= 1:
        raise RecordingError("--threshold", f"{threshold:g} is no probability; give one within 0 and 1")
    return threshold


def _scores(recording: Recording, number: int, options: argparse.Namespace) -> BinaryScores:
    positive = recording.labels == number
    if not options.decision_values:
        return BinaryScores(number, recording.probabilities[:, number], positive)
    values = recording.decision_values
    if values is None:
        raise RecordingError(
            recording.name,
            "it has no decision values; save them as the array 'decision_values' of an .npz, or leave "
            "--decision-values out",
        )
    if recording.classes != TWO_CLASSES:
        raise RecordingError(
            recording.name,
            f"it has {recording.classes} classes, decision values are of two; leave --decision-values out",
        )
    return BinaryScores(number, values if number == SECOND else -values, positive, unit=False)
