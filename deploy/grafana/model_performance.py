"""The row of a model's dashboard about the performance of a binary classifier; empty for all others."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import dashboard as kinds

from deploy.grafana import looks
from deploy.grafana.frame import variable
from deploy.grafana.panels import Query, Says, band, lines, number
from deploy.grafana.promql import age, counted, series, shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_AT = (_MODEL, 'assessment="$assessment"')
_MISSED = "credence_performance_target_missed_probability"
_NOTHING = "no assessment of performance"
_AGE: looks.Steps = ((None, looks.GREY), (0, looks.BLUE), (600, looks.ORANGE), (1_800, looks.VERMILLION))


def chosen() -> build.QueryVariable:
    """The assessment whose performance is shown; the variable has no value where there is none."""
    learned = series("credence_performance_timestamp_seconds", _MODEL)
    return variable(
        "assessment",
        "Performance",
        "The performance assessment of a binary classifier.",
        f"label_values({learned}, assessment)",
    ).sort(kinds.VariableSort.ALPHABETICAL_ASC)


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Performance of a binary classifier").collapsed(True))
    for says, expression in _numbers():
        board = board.with_panel(number(says, Query(expression), width=4))
    for panel in _bands():
        board = board.with_panel(panel)
    return board.with_panel(_measures()).with_panel(_misses()).with_panel(_thresholds())


def _numbers() -> list[tuple[Says, str]]:
    return [
        (
            Says(
                "Best threshold",
                "Decision threshold with the highest probability of meeting all targets.",
                looks.PLAIN,
                3,
                nothing=_NOTHING,
            ),
            shown("credence_performance_best_threshold_ratio", *_AT, by=""),
        ),
        (
            Says(
                "P(all targets met)",
                "Posterior probability that the best threshold meets all targets. If it is low, no "
                "threshold does.",
                looks.RATIO,
                1,
                nothing=_NOTHING,
            ),
            shown("credence_performance_best_threshold_probability", *_AT, by=""),
        ),
        (
            Says(
                "Labels",
                "Labels used for the estimate, requested by any assessment.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
            ),
            shown("credence_performance_labels", *_AT, by=""),
        ),
        (
            Says(
                "Learned",
                "Age of the estimate. It is computed in the background every schedule.performance_seconds.",
                looks.SECONDS,
                0,
                nothing=_NOTHING,
                steps=_AGE,
            ),
            age("credence_performance_timestamp_seconds", *_AT, by=""),
        ),
        (
            Says(
                "Failed estimations",
                "Failures to estimate the performance of this model in the selected time range. The "
                "previous estimate is kept.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
                steps=looks.ANY_IS_BAD,
            ),
            counted(
                "credence_performance_failures_total", *_AT, where="credence_performance_timestamp_seconds"
            ),
        ),
        (
            Says(
                "Misfit",
                "Yes if no mixture of two distributions, one per class, fits the scores. Precision and "
                "recall then come from logistic curves fitted to labels. This is not an error.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
                steps=looks.ANY_IS_ODD,
                words=looks.YES_NO,
            ),
            shown("credence_performance_misfit", *_AT, by=""),
        ),
    ]


def _bands() -> list[timeseries.Panel]:
    name, target = "credence_performance_{}_ratio", "credence_performance_target_ratio"
    return [
        band(
            Says(
                "Precision",
                "Precision at the model's threshold: median, credible interval, and the target.",
                looks.RATIO,
                1,
                nothing=_NOTHING,
            ),
            name,
            (*_AT, 'measure="precision"'),
            target,
            limit="target",
            point="median",
        ),
        band(
            Says(
                "Recall",
                "Recall at the model's threshold: median, credible interval, and the target.",
                looks.RATIO,
                1,
                nothing=_NOTHING,
            ),
            name,
            (*_AT, 'measure="recall"'),
            target,
            limit="target",
            point="median",
        ),
        band(
            Says(
                "Prevalence",
                "Share of the traffic that is positive: median and credible interval. If prevalence falls, "
                "precision falls too.",
                looks.RATIO,
                1,
                nothing=_NOTHING,
            ),
            name,
            (*_AT, 'measure="prevalence"'),
            point="median",
        ),
    ]


def _measures() -> table.Panel:
    def column(name: str, metric: str, steps: looks.Steps | None = None) -> Column:
        return Column(name, shown(metric, *_AT, by="measure"), looks.RATIO, 1, steps)

    return grid(
        Says(
            "Measures at the model's threshold",
            "Each measure with its median and credible interval, its target, and the probability of missing "
            "it. The target of the false positive rate is a maximum; all others are minimums.",
            looks.PLAIN,
        ),
        {"measure": "Measure"},
        [
            *(
                column(end.capitalize(), f"credence_performance_{end}_ratio")
                for end in ("lower", "median", "upper")
            ),
            column("Target", "credence_performance_target_ratio"),
            column("Missed", _MISSED, looks.PROBABILITY),
        ],
        sort="Missed",
    )


def _misses() -> timeseries.Panel:
    return lines(
        Says(
            "P(target missed)",
            "Posterior probability that a measure misses its target at the model's threshold, and "
            "alerts.confidence, at which it counts as missed.",
            looks.RATIO,
            1,
            nothing="no targets are configured",
            bounds=looks.PROBABLE,
        ),
        Query(shown(_MISSED, *_AT, by="measure"), "{{measure}}"),
        Query(shown("credence_alert_confidence_ratio", _MODEL, by=""), "counts as missed"),
        width=12,
        colours={"counts as missed": looks.VERMILLION},
    )


def _thresholds() -> timeseries.Panel:
    best = "credence_performance_best_threshold"
    return lines(
        Says(
            "Best threshold over time",
            "The model's threshold, the threshold with the highest probability of meeting all "
            "targets, and that probability.",
            looks.PLAIN,
            3,
            nothing=_NOTHING,
            bounds=looks.PROBABLE,
        ),
        Query(shown("credence_performance_threshold_ratio", *_AT, by=""), "the model's threshold"),
        Query(shown(f"{best}_ratio", *_AT, by=""), "best threshold"),
        Query(shown(f"{best}_probability", *_AT, by=""), "probability that it meets all targets"),
        width=12,
        colours={
            "the model's threshold": looks.GREY,
            "best threshold": looks.BLUE,
            "probability that it meets all targets": looks.ORANGE,
        },
    )
