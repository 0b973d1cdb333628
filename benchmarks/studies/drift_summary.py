"""Tables and figures of a study of drift: what ways of forgetting have followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.studies.drift_streams import (
    CHANGE,
    DRIFTING,
    EVERY,
    HEALTHY,
    LOOKS,
    NO_DRIFT,
    DriftStudy,
    Followed,
    Scenario,
)
from service.domain.arrays import Flags
from service.replay import plots
from service.replay.tables import Cell, Table

_PER = 10_000
"""Labels over which false alarms are counted."""

Found = Mapping[Scenario, Mapping[str, Followed]]


def drift_summary(study: DriftStudy, found: Found) -> list[Table]:
    """Tables of one recording: rows are drifts, columns ways of forgetting; the last ones tell of changes."""
    name, mass = study.pool.recording.name, f"{100 * study.mass:g}%"
    runs = f"{study.runs} runs of {len(study.pool.names)} groups, seed {study.seed}."
    drifts = {scenario: followed for scenario, followed in found.items() if scenario.shape != NO_DRIFT}
    drifting = LOOKS > HEALTHY

    def table(title: str, rows: Found, figure: Callable[[Followed], Cell], *notes: str) -> Table:
        columns = tuple(study.methods)
        cells = [
            (str(drift), tuple(figure(followed[each]) for each in columns))
            for drift, followed in rows.items()
        ]
        return Table(f"{name}, drift: {title}", "drift", columns, cells, notes=(*notes, runs))

    quiet = found[Scenario(NO_DRIFT)]
    return [
        table(
            "RMSE of group accuracy, x 100",
            found,
            lambda followed: 100 * float(np.sqrt(followed.squared_error()[drifting].mean())),
            f"Over the {DRIFTING} labels from the beginning of the drift.",
        ),
        table(
            f"share of {mass} intervals that hold the accuracy of the moment, %",
            found,
            lambda followed: 100 * float(followed.held()[drifting].mean()),
            "Likewise. No way of forgetting knows of a drift before its labels tell.",
        ),
        table(
            "labels until the drift is noticed, mean",
            drifts,
            lambda followed: _delay(followed.noticed()[:, drifting])[0],
            "Noticed: the whole interval lies below the accuracy before. Of streams alone in which it does.",
        ),
        table(
            "streams in which the drift is noticed, %",
            drifts,
            lambda followed: 100 * _delay(followed.noticed()[:, drifting])[1],
        ),
        Table(
            f"{name}, {NO_DRIFT}: what forgetting costs",
            "method",
            ("effective labels", f"false alarms in {_PER:,} labels"),
            [
                (each, (float(followed.labels[:, -1].mean()), _false(followed.noticed())))
                for each, followed in quiet.items()
            ],
            notes=(
                f"After {HEALTHY + DRIFTING} labels. False alarms: the interval comes to lie below.",
                runs,
            ),
        ),
        Table(
            f"{name}, drift: reported changes",
            "drift",
            ("streams, %", "labels until then, mean", "labels off, median"),
            [(str(scenario), _told(followed[CHANGE])) for scenario, followed in drifts.items()],
            notes=(
                "By forgetting after changes. Off: the first reported date, from when the drift begins.",
                f"Without a drift: {_false(quiet[CHANGE].before > 0):.2g} changes in {_PER:,} labels.",
                runs,
            ),
        ),
    ]


def _delay(noticed: Flags) -> tuple[float | None, float]:
    """Labels until the first look at which it is so, mean of the streams in which it is; and their share."""
    some = noticed.any(axis=1)
    if not some.any():
        return None, 0.0
    return float(EVERY * (noticed[some].argmax(axis=1) + 1).mean()), float(some.mean())


def _false(alarms: Flags) -> float:
    """How often alarms begin, for every so many labels."""
    begun = np.count_nonzero(alarms[:, 1:] & ~alarms[:, :-1]) + np.count_nonzero(alarms[:, 0])
    return begun * _PER / (len(alarms) * (HEALTHY + DRIFTING))


def _told(change: Followed) -> tuple[Cell, Cell, Cell]:
    """Share of streams in which a change is reported after the drift begins; when; how well it is dated."""
    before = change.before[:, LOOKS > HEALTHY]
    delay, share = _delay(before > 0)
    if delay is None:
        return 0.0, None, None
    some = (before > 0).any(axis=1)
    first = before[some, (before[some] > 0).argmax(axis=1)]
    return 100 * share, delay, float(np.median(np.abs(first - HEALTHY)))


def draw_drift(name: str, found: Found, directory: Path) -> None:
    """Write figures, as PNG files: for every drift the errors by number of labels."""
    for scenario, followed in found.items():
        errors = {method: np.sqrt(each.squared_error()) for method, each in followed.items()}
        title = f"{name}, {scenario}: RMSE of group accuracy"
        figure = plots.curves(LOOKS.astype(np.float64), errors, "RMSE", "%", title=title)
        written = str(scenario).replace(", ", "-").replace(" ", "-")
        plots.save(figure, directory / f"{name}-drift-{written}.png")
