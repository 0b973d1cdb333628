"""How much error a method leaves at a number of labels, and how many labels it takes, beside the others.

For every recording: groupwise accuracy, confusion matrix and calibration error under the learned prior
relative to the paper's methods (UPrior, IPrior, IPrior+TS); labels until the least accurate class is found;
the accuracy over all traffic beside Neyman's allocation by the model's own scores; and how often 95%
intervals hold the truth. Every ratio is of two figures of the same run of this program.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from service.domain.arrays import Floats
from service.replay.digits import digits_recordings
from service.replay.engine import OURS, PAPERS, Method
from service.replay.grouping import Grouper
from service.replay.options import Binning
from service.replay.pool import Pool
from service.replay.recording import Recording, load_recording
from service.replay.study import Study
from service.replay.tables import Table, print_tables
from service.replay.workers import Workers, workers

BINS = 10
LABELS = (50, 100, 200, 500)
THOMPSON = PAPERS["IPrior+TS"]


class Efficiency:
    """All tables of one recording.

    Args:
        recording: the predictions, with all labels.
        runs: of every study.
        crew: runs them.
    """

    def __init__(self, recording: Recording, runs: int, crew: Workers) -> None:
        self._recording, self._runs, self._crew = recording, runs, crew
        self._strata = Grouper(BINS, "equal_size").by_predicted_class(recording)
        self._per_group = tuple(min(count * recording.classes, recording.size) for count in (2, 5, 10))

    def tables(self) -> list[Table]:
        """All of them."""
        return [
            self._accuracy(),
            self._confusion(),
            self._calibration("equal_size"),
            self._calibration("equal_width"),
            self._identification(),
            self._overall(),
            *self._coverage(),
        ]

    def _accuracy(self) -> Table:
        means = self._means(self._strata, "accuracy", self._per_group, "rmse", (THOMPSON, *OURS))
        reference = means.pop(THOMPSON)
        return self._ratios(
            "groupwise accuracy: RMSE, relative to IPrior+TS", self._per_group, means, reference
        )

    def _confusion(self) -> Table:
        methods = (*PAPERS.values(), *OURS)
        means = self._means(self._strata, "confusion", self._per_group, "rmse", methods)
        return self._beside_best("confusion matrix: RMSE", self._per_group, means)

    def _calibration(self, binning: Binning) -> Table:
        pool = Grouper(BINS, binning).bins_alone(self._recording)
        at = (20, *LABELS)
        methods = (*PAPERS.values(), *OURS)
        means = self._means(pool, "calibration", at, "ece_error_percent", methods)
        return self._beside_best(f"ECE of {binning.replace('_', '-')} bins: error", at, means)

    def _identification(self) -> Table:
        size = self._recording.size
        rows: list[tuple[str, tuple[float | None, ...]]] = []
        wanted = [count for count in (1, 3) if count < len(self._strata.names)]
        for prior in ("informed", "learned"):
            shares = []
            for count in wanted:
                study = Study(
                    self._strata, "identification", "accuracy", runs=self._runs, budget=size, top_m=count
                )
                result = study.run(Method(prior, "multiple_play"), self._crew)
                shares.append(100 * float(result.per_run["stays"].mean()) / size)
            rows.append((f"{prior}+multiple_play", tuple(shares)))
        columns = tuple(f"top {count}" for count in wanted)
        return self._table("least accurate classes: % of the pool until found for good", columns, rows)

    def _overall(self) -> Table:
        pool = Grouper(BINS, "equal_size").bins_alone(self._recording)
        study = Study(pool, "estimation", "overall_accuracy", runs=self._runs, budget=max(LABELS), at=LABELS)
        neyman = _neyman_errors(pool, LABELS, 20 * self._runs)
        rows: list[tuple[str, tuple[float | None, ...]]] = [("Neyman by scores", tuple(neyman.tolist()))]
        for method in OURS:
            errors = study.run(method, self._crew).per_run["overall_error"]
            rows.append((str(method), tuple((100 * np.sqrt((errors**2).mean(axis=0))).tolist())))
        columns = tuple(str(used) for used in LABELS)
        return self._table("accuracy over all traffic, score bins as groups: RMSE x 100", columns, rows)

    def _coverage(self) -> list[Table]:
        study = Study(self._strata, "estimation", "accuracy", runs=self._runs, budget=max(LABELS), at=LABELS)
        results = {method: study.run(method, self._crew) for method in (THOMPSON, *OURS)}
        columns = tuple(str(used) for used in LABELS)

        def table(what: str, key: str) -> Table:
            rows: list[tuple[str, tuple[float | None, ...]]] = [
                (str(method), tuple((100 * result.per_run[key].mean(axis=0)).tolist()))
                for method, result in results.items()
            ]
            return self._table(f"95% intervals of {what}: % that hold the truth", columns, rows, best=False)

        return [table("groupwise accuracy", "coverage"), table("the accuracy over all", "overall_coverage")]

    def _means(
        self, pool: Pool, metric: str, at: tuple[int, ...], key: str, methods: tuple[Method, ...]
    ) -> dict[Method, Floats]:
        study = Study(pool, "estimation", metric, runs=self._runs, budget=max(at), at=at)
        results = {method: study.run(method, self._crew) for method in methods}
        return {method: result.per_run[key].mean(axis=0) for method, result in results.items()}

    def _beside_best(self, what: str, at: tuple[int, ...], means: dict[Method, Floats]) -> Table:
        best = np.min([means.pop(method) for method in PAPERS.values()], axis=0)
        return self._ratios(f"{what}, relative to the best of the paper's methods", at, means, best)

    def _ratios(
        self, what: str, at: tuple[int, ...], means: Mapping[Method, Floats], reference: Floats
    ) -> Table:
        rows: list[tuple[str, tuple[float | None, ...]]] = [
            (str(method), tuple((values / reference).tolist())) for method, values in means.items()
        ]
        return self._table(what, tuple(str(used) for used in at), rows)

    def _table(
        self,
        what: str,
        columns: tuple[str, ...],
        rows: list[tuple[str, tuple[float | None, ...]]],
        *,
        best: bool = True,
    ) -> Table:
        return Table(
            title=f"{self._recording.name}, {what}",
            corner="method \\ labels",
            columns=columns,
            rows=rows,
            marked=frozenset(columns if best else ()),
        )


def _neyman_errors(pool: Pool, at: tuple[int, ...], runs: int) -> Floats:
    """RMSE x 100 [C] of the stratified mean, with labels in proportion to p_b sqrt(s_b (1 - s_b))."""
    rng = np.random.default_rng(0)
    shares, scores = pool.cells.group_shares, pool.cells.group_scores
    right = np.round(pool.accuracy * pool.sizes).astype(np.int64)
    ideal = shares * np.sqrt(scores * (1 - scores))
    errors = []
    for used in at:
        wanted = used * ideal / ideal.sum()
        labels = np.maximum(np.floor(wanted), 1).astype(np.int64)
        while labels.sum() < used:
            labels[np.argmax(wanted - labels)] += 1
        while labels.sum() > used:
            labels[np.argmax(labels - wanted)] -= 1
        labels = np.clip(labels, 1, pool.sizes)
        drawn = rng.hypergeometric(right, pool.sizes - right, labels, size=(runs, len(labels)))
        errors.append((drawn / labels) @ shares - shares @ pool.accuracy)
    return np.asarray(100 * np.sqrt((np.array(errors) ** 2).mean(axis=1)), np.float64)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure label efficiency.")
    parser.add_argument("files", nargs="*", type=Path, help="recordings (default: those of digits)")
    parser.add_argument("--runs", type=int, default=100, help="independent runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--markdown", action="store_true", help="print Markdown in place of tables")
    options = parser.parse_args()
    recordings = [load_recording(path) for path in options.files] or digits_recordings()
    with workers(options.jobs) as crew:
        tables = [
            table for recording in recordings for table in Efficiency(recording, options.runs, crew).tables()
        ]
    print_tables(tables, as_json=options.json, as_markdown=options.markdown)


if __name__ == "__main__":
    main()
