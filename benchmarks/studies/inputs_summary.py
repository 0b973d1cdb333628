"""Tables and figures of changing inputs: what is reported without labels, and with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.studies.inputs_items import NO_CHANGE, Change
from benchmarks.studies.inputs_labelled import WAYS, Labelled
from benchmarks.studies.inputs_study import InputsStudy, Seen
from benchmarks.studies.inputs_watched import CHANGED, CHANGING, DRIFT, HEALTHY, MEASURES, ROUND
from service.domain.arrays import Flags, Floats, Ints
from service.replay import plots
from service.replay.tables import Cell, Table
from service.statistics.drift import kolmogorov_smirnov, mix_drift

ALL_TRAFFIC = "all traffic"
_PREDICTIONS = 10**9
"""So many that counts of them are shares."""

_FALLS = 1e-9

Found = Sequence[tuple[Change, Seen]]
_ROUNDS = np.arange(1, CHANGED + 1)


def inputs_summary(study: InputsStudy, found: Found) -> list[Table]:
    """Tables of one recording: rows are changes, columns measures, or ways to ask for labels."""
    items, sure = study.items, f"{100 * (1 - study.alpha):g}%"
    runs = f"{study.runs} runs of {study.groups} groups, seed {study.seed}."
    ratio = f"A label comes for every {study.predictions:,} predictions."
    changed = [(change, seen) for change, seen in found if change.name != NO_CHANGE]
    worse = [(change, seen) for change, seen in changed if _falls(study, change)]

    def table(
        title: str,
        columns: Sequence[str],
        rows: Found,
        cells: Callable[[Change, Seen], list[Cell]],
        *notes: str,
    ) -> Table:
        followed = [(str(change), tuple(cells(change, seen))) for change, seen in rows]
        return Table(
            f"{items.name}, inputs: {title}", "change", tuple(columns), followed, notes=(*notes, runs)
        )

    ways = tuple(map(str, WAYS))
    return [
        table(
            "accuracy of the group, and what shows it",
            ("accuracy, %", "promised, %", "scores, distance", "scores, KS", "classes, distance"),
            found,
            lambda change, _: _known(study, change),
            "Promised: by the scores, each bin as accurate as before the change.",
        ),
        table(
            "predictions until the group has drifted, mean",
            (*MEASURES, ALL_TRAFFIC),
            changed,
            lambda _, seen: [_mean(each, ROUND) for each in _flags(seen).values()],
            f"Of all groups, since the change; more than {DRIFT.max_distance:g} from the reference, by that "
            "alone. Of streams in which it has.",
        ),
        table(
            "streams in which the group has drifted, %",
            (*MEASURES, ALL_TRAFFIC),
            changed,
            lambda _, seen: [_share(each) for each in _flags(seen).values()],
            f"Within {CHANGED * ROUND:,} predictions.",
        ),
        table(
            "labels until it is confirmed that the group got worse, median",
            ways,
            worse,
            lambda _, seen: [_median(study, _since(each.confirmed)) for each in seen.labelled.values()],
            f"{ratio} Evidence that a group is less accurate than before the change, by e-BH over all "
            f"groups, alpha {study.alpha:g}. No median where fewer than half of the streams have it.",
        ),
        table(
            "streams in which it is confirmed, %",
            ways,
            worse,
            lambda _, seen: [_share(_since(each.confirmed)) for each in seen.labelled.values()],
            f"Within {CHANGED * ROUND // study.predictions:,} labels.",
        ),
        table(
            "labels that the group gets, % of all since the change",
            ways,
            found,
            lambda _, seen: [_given(each) for each in seen.labelled.values()],
        ),
        table(
            "streams in which labels disagree with scores, %",
            ways,
            found,
            lambda _, seen: [_share(each) for each in _disagreements(study, seen)],
            f"At any look, the group is less accurate than its scores promise with a probability of {sure}.",
        ),
        table(
            "labels until labels disagree with scores, median",
            ways,
            found,
            lambda _, seen: [_median(study, each) for each in _disagreements(study, seen)],
            ratio,
        ),
        Table(
            f"{items.name}, inputs: streams in which something false is reported, %",
            "reported",
            tuple(str(change) for change, _ in found),
            list(
                zip(
                    ("drifted", *(f"confirmed, {way}" for way in ways)),
                    zip(*(_false(study, change, seen) for change, seen in found), strict=True),
                    strict=True,
                )
            ),
            notes=(
                "At any look, of a group whose inputs, or whose accuracy, are as they were before.",
                runs,
            ),
        ),
    ]


def draw_inputs(study: InputsStudy, found: Found, directory: Path) -> None:
    """Write figures, as PNG files: for every fall of accuracy in how many streams it is confirmed by when."""
    labels = _ROUNDS * ROUND / study.predictions
    for change, seen in found:
        if _falls(study, change):
            confirmed = {
                str(way): np.maximum.accumulate(_since(followed.confirmed)).mean(axis=1)
                for way, followed in seen.labelled.items()
            }
            title = f"{study.items.name}, {change}: streams in which the fall is confirmed"
            figure = plots.curves(labels, confirmed, "streams", "%", title=title)
            written = str(change).replace("%", "").replace(", ", "-").replace(" ", "-").replace("/", "-")
            plots.save(figure, directory / f"{study.items.name}-inputs-{written}.png")


def _falls(study: InputsStudy, change: Change) -> bool:
    return study.items.accuracy(change) < study.items.accuracy(study.items.healthy) - _FALLS


def _known(study: InputsStudy, change: Change) -> list[Cell]:
    """What all traffic of the group would tell after a change."""
    items = study.items
    promised = float(items.by_bin(change) @ items.bin_accuracies)
    then, now = (
        [_counts(of(each)) for of in (items.by_bin, items.by_class)] for each in (items.healthy, change)
    )
    scores, classes = (
        float(mix_drift(a, b, comparisons=1).distance[0]) for a, b in zip(then, now, strict=True)
    )
    difference = float(kolmogorov_smirnov(then[0], now[0])[0])
    return [100 * items.accuracy(change), 100 * promised, scores, difference, classes]


def _counts(shares: Floats) -> Ints:
    return np.rint(_PREDICTIONS * shares).astype(np.int64)[None]


def _flags(seen: Seen) -> dict[str, Flags]:
    """By measure, whether the group that changes, or all traffic, has drifted by then [CHANGED, R]."""
    flags = {
        measure: np.stack([each.flagged(measure)[HEALTHY:, CHANGING] for each in seen.watched], axis=1)
        for measure in MEASURES
    }
    together = np.stack([each.all_traffic[HEALTHY:] for each in seen.watched], axis=1)
    return flags | {ALL_TRAFFIC: together > DRIFT.max_distance}


def _since(followed: Flags) -> Flags:
    """Of the group that changes, since it does [CHANGED, R]."""
    return followed[HEALTHY:, :, CHANGING]


def _disagreements(study: InputsStudy, seen: Seen) -> list[Flags]:
    return [_since(each.below_expected >= 1 - study.alpha) for each in seen.labelled.values()]


def _first(followed: Flags) -> Floats:
    """Rounds until something is reported first [R]; infinite where it never is."""
    return np.where(followed.any(axis=0), _ROUNDS[followed.argmax(axis=0)], np.inf)


def _mean(followed: Flags, unit: float) -> Cell:
    """Until it is reported, mean of the streams in which it is."""
    rounds = _first(followed)
    some = rounds[np.isfinite(rounds)]
    return unit * float(some.mean()) if some.size else None


def _median(study: InputsStudy, followed: Flags) -> Cell:
    """Labels until it is reported, median of all streams; None where it is not in half of them."""
    rounds = np.sort(_first(followed))[(followed.shape[1] - 1) // 2]
    return float(rounds * ROUND / study.predictions) if np.isfinite(rounds) else None


def _share(followed: Flags) -> float:
    """Of streams in which it is ever reported, %."""
    return 100 * float(followed.any(axis=0).mean())


def _given(followed: Labelled) -> Cell:
    """Share of the labels since the change that the group gets, %."""
    given = (followed.labels[-1] - followed.labels[HEALTHY - 1]).sum(axis=0)
    return 100 * float(given[CHANGING] / given.sum()) if given.any() else None


def _false(study: InputsStudy, change: Change, seen: Seen) -> list[Cell]:
    """Share of streams in which drift is reported, or a fall is confirmed, that is none, %."""
    same_inputs = np.ones((HEALTHY + CHANGED, study.groups), np.bool_)
    same_accuracy = same_inputs.copy()
    same_inputs[HEALTHY:, CHANGING] = np.array_equal(change.weights, study.items.healthy.weights)
    same_accuracy[HEALTHY:, CHANGING] = not _falls(study, change)
    drifted = [(each.flagged(MEASURES[-1]) & same_inputs).any() for each in seen.watched]
    confirmed = [
        (each.confirmed & same_accuracy[:, None]).any(axis=(0, 2)) for each in seen.labelled.values()
    ]
    return [100 * float(np.mean(each)) for each in (drifted, *confirmed)]
