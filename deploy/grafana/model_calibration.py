"""The rows of a model's dashboard that are about its scores, and about what its mistakes cost."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks
from deploy.grafana.panels import Query, Says, band, lines
from deploy.grafana.promql import shown
from deploy.grafana.tables import Column, columns_chart

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_BINS = (_MODEL, 'grouping="score_bin"')
_GAP = "credence_group_calibration_gap_ratio"
_ENDS = ("lower", "mean", "upper")
_END_COLOURS = {"Accuracy lower": looks.SKY, "Accuracy mean": looks.BLUE, "Accuracy upper": looks.SKY}


def rows(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with these rows."""
    board = _calibration(board.with_row(build.Row("Calibration")))
    return _costs(board.with_row(build.Row("Costs").collapsed(True)))


def _calibration(board: build.Dashboard) -> build.Dashboard:
    return (
        board.with_panel(
            columns_chart(
                Says(
                    "Reliability",
                    "Mean score of each score bin, and accuracy with its credible interval. If the model is "
                    "calibrated, scores are between lower and upper. Scores above upper are overconfident.",
                    looks.RATIO,
                    1,
                    nothing="no traffic",
                ),
                ("group", "Score bin"),
                [
                    Column(
                        "Mean score",
                        shown("credence_group_score_mean_ratio", *_BINS, by="group"),
                        looks.RATIO,
                        1,
                    ),
                    *(
                        Column(
                            f"Accuracy {end}",
                            shown(f"credence_group_accuracy_{end}_ratio", *_BINS, by="group"),
                            looks.RATIO,
                            1,
                        )
                        for end in _ENDS
                    ),
                ],
                colours={"Mean score": looks.ORANGE} | _END_COLOURS,
            )
        )
        .with_panel(
            columns_chart(
                Says(
                    "Calibration gap by group of $grouping",
                    "Mean score minus accuracy: positive if the model is overconfident, negative if it is "
                    "underconfident. At most twenty groups, the most overconfident first.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this grouping",
                ),
                ("group", "Group"),
                [
                    Column(
                        "Gap",
                        f"topk(20, {shown(_GAP, *_ALL_GROUPS, by='group')})",
                        looks.RATIO,
                        1,
                    )
                ],
                colours={"Gap": looks.ORANGE},
                across=True,
            )
        )
        .with_panel(
            band(
                Says(
                    "Overall calibration error over time",
                    "The credible interval of the expected calibration error: how far scores are from "
                    "accuracy, on average; and its limit.",
                    looks.RATIO,
                    1,
                    nothing="no traffic",
                ),
                "credence_group_ece_{}_ratio",
                (_MODEL, 'grouping="all"'),
                "credence_group_max_ece_ratio",
                width=24,
            )
        )
    )


def _costs(board: build.Dashboard) -> build.Dashboard:
    nothing = "no costs are configured for this model"
    return board.with_panel(
        columns_chart(
            Says(
                "Expected cost by predicted class",
                "Expected cost of a prediction of each class, with its credible interval, in the unit of "
                "the configured costs.",
                looks.PLAIN,
                3,
                nothing=nothing,
            ),
            ("group", "Predicted class"),
            [
                Column(f"Cost {end}", shown(f"credence_group_cost_{end}", _MODEL, by="group"), looks.PLAIN, 3)
                for end in _ENDS
            ],
            colours={"Cost lower": looks.SKY, "Cost mean": looks.BLUE, "Cost upper": looks.SKY},
        )
    ).with_panel(
        lines(
            Says(
                "Expected cost over time",
                "Posterior mean of the expected cost of a prediction, for the ten most costly predicted "
                "classes.",
                looks.PLAIN,
                3,
                nothing=nothing,
            ),
            Query(f"topk(10, {shown('credence_group_cost_mean', _MODEL, by='group')})", "{{group}}"),
            width=12,
            height=9,
        )
    )
