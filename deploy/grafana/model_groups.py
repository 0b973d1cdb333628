"""The rows of a model's dashboard that are about its groups."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries

from deploy.grafana import looks
from deploy.grafana.frame import link_to_group
from deploy.grafana.panels import Query, Says, band, bars, lines
from deploy.grafana.promql import shown
from deploy.grafana.tables import Column, columns_chart, grid

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_CHOSEN = (*_ALL_GROUPS, 'group=~"$group"')
_BINS = (_MODEL, 'grouping="score_bin"')
_ENDS = ("lower", "mean", "upper")
_END_COLOURS = {"Accuracy lower": looks.SKY, "Accuracy mean": looks.BLUE, "Accuracy upper": looks.SKY}
_BELOW = "credence_group_accuracy_below_threshold_probability"
_MISCALIBRATED = "credence_group_ece_above_threshold_probability"


def rows(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with these rows."""
    board = board.with_row(build.Row("Groups of $grouping")).with_panel(_evidence()).with_panel(_traffic())
    board = _over_time(board.with_row(build.Row("$grouping $group over time").repeat("group")))
    board = _calibration(board.with_row(build.Row("Calibration")))
    return _labels(_costs(board.with_row(build.Row("Costs"))).with_row(build.Row("Labels")))


def _evidence() -> table.Panel:
    return grid(
        Says(
            "Groups by probability of being below target",
            "Sorted by probability of being below alerts.min_accuracy. The calibration gap is "
            "positive if the model is overconfident. `Labels to a verdict` is the number of labels "
            "that the group still needs until a verdict. `From own labels` is the share of the "
            "estimate that comes from the group's own labels; the rest comes from scores and other "
            "groups. Click a group to show it below.",
            looks.PLAIN,
            nothing="no traffic in this grouping",
        ),
        {"group": "Group"},
        [
            Column("Below target", _group(_BELOW), looks.RATIO, 1, looks.PROBABILITY),
            *(
                Column(f"Accuracy {end}", _group(f"credence_group_accuracy_{end}_ratio"), looks.RATIO, 1)
                for end in _ENDS
            ),
            Column("Mean score", _group("credence_group_score_mean_ratio"), looks.RATIO, 1),
            Column("Calibration gap", _group("credence_group_calibration_gap_ratio"), looks.RATIO, 1),
            Column("ECE", _group("credence_group_ece_mean_ratio"), looks.RATIO, 1),
            Column("ECE too high", _group(_MISCALIBRATED), looks.RATIO, 1, looks.PROBABILITY),
            Column("Traffic", _group("credence_group_traffic_share_ratio"), looks.RATIO, 1),
            Column("Effective labels", _group("credence_group_effective_labels"), looks.COUNT, 1),
            Column("From own labels", _group("credence_group_own_labels_share"), looks.RATIO, 0),
            Column("Labels to a verdict", _group("credence_group_labels_to_decision"), looks.COUNT, 0),
            Column("Time to a verdict", _group("credence_group_time_to_decision_seconds"), looks.SECONDS, 0),
        ],
        links={"Group": link_to_group("Group")},
        sort="Below target",
        height=9,
    )


def _traffic() -> timeseries.Panel:
    return lines(
        Says(
            "Traffic in groups that fail or meet the target",
            "Share of traffic in groups that are below alerts.min_accuracy with the configured "
            "confidence, and in groups that meet it, including groups folded into `other`. The rest "
            "is undecided.",
            looks.RATIO,
            1,
            nothing="no alerts.min_accuracy, or score bins, which have no target",
            bounds=looks.PROBABLE,
        ),
        *(
            Query(shown(f"credence_grouping_traffic_share_{name}_ratio", *_ALL_GROUPS, by=""), name)
            for name in ("failing", "meeting")
        ),
        width=24,
        height=6,
        colours={"failing": looks.VERMILLION, "meeting": looks.BLUE},
        stacked=True,
    )


def _group(name: str) -> str:
    return shown(name, *_ALL_GROUPS, by="group")


def _over_time(board: build.Dashboard) -> build.Dashboard:
    return (
        board.with_panel(
            band(
                Says(
                    "Accuracy of $group",
                    "Credible interval of the group's accuracy, and alerts.min_accuracy (dashed). If the "
                    "whole band is below the line, the group is probably below its target.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this group",
                ),
                "credence_group_accuracy_{}_ratio",
                _CHOSEN,
                "credence_alert_min_accuracy_ratio",
                width=6,
            )
        )
        .with_panel(
            band(
                Says(
                    "Calibration error of $group",
                    "Credible interval of the group's expected calibration error, and alerts.max_ece.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this group",
                ),
                "credence_group_ece_{}_ratio",
                _CHOSEN,
                "credence_alert_max_ece_ratio",
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "P(threshold violated) in $group",
                    "Posterior probabilities that a threshold is violated, and alerts.confidence, at which it"
                    " counts as violated.",
                    looks.RATIO,
                    1,
                    nothing="no thresholds are configured",
                    bounds=looks.PROBABLE,
                ),
                Query(shown(_BELOW, *_CHOSEN, by=""), "accuracy below target"),
                Query(shown(_MISCALIBRATED, *_CHOSEN, by=""), "calibration error too high"),
                Query(shown("credence_alert_confidence_ratio", _MODEL, by=""), "counts as violated"),
                width=6,
                colours={
                    "accuracy below target": looks.BLUE,
                    "calibration error too high": looks.ORANGE,
                    "counts as violated": looks.VERMILLION,
                },
            )
        )
        .with_panel(
            lines(
                Says(
                    "Calibration gap of $group",
                    "Mean score minus accuracy: positive if the model is overconfident, negative if it is "
                    "underconfident.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this group",
                ),
                Query(shown("credence_group_calibration_gap_ratio", *_CHOSEN, by=""), "gap"),
                width=6,
                colours={"gap": looks.BLUE},
            )
        )
    )


def _calibration(board: build.Dashboard) -> build.Dashboard:
    return board.with_panel(
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
    ).with_panel(
        bars(
            Says(
                "Calibration gap by group of $grouping",
                "Mean score minus accuracy: positive if the model is overconfident, negative if it is "
                "underconfident. At most twenty groups, the most overconfident first.",
                looks.RATIO,
                1,
                nothing="no traffic in this grouping",
                steps=(
                    (None, looks.ORANGE),
                    (-0.05, looks.BLUE),
                    (0.05, looks.ORANGE),
                    (0.15, looks.VERMILLION),
                ),
            ),
            Query(f"topk(20, {_group('credence_group_calibration_gap_ratio')})", "{{group}}"),
            width=12,
            height=9,
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


def _labels(board: build.Dashboard) -> build.Dashboard:
    outcomes = {"correct": looks.BLUE, "incorrect": looks.VERMILLION}
    return (
        board.with_panel(
            columns_chart(
                Says(
                    "Labels by outcome",
                    "Labelled predictions in each group, correct and incorrect. Labels are not a random "
                    "sample of the traffic, so their error rate is not that of the model.",
                    looks.COUNT,
                    0,
                    nothing="no label yet",
                ),
                ("group", "Group"),
                [
                    Column(
                        outcome,
                        shown("credence_group_labels", *_ALL_GROUPS, f'outcome="{outcome}"', by="group"),
                        looks.COUNT,
                        0,
                    )
                    for outcome in outcomes
                ],
                colours=outcomes,
                stacked=True,
                width=8,
            )
        )
        .with_panel(
            bars(
                Says(
                    "Effective labels",
                    "Effective number of labels of each group, after weighting and forgetting; at most twenty"
                    " groups, the fewest first. Few labels give wide intervals.",
                    looks.COUNT,
                    1,
                    nothing="no label yet",
                ),
                Query(f"sort(bottomk(20, {_group('credence_group_effective_labels')}))", "{{group}}"),
                height=9,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Labels to a verdict",
                    "Labels that each selected group still needs until it is decided to be above or below "
                    "alerts.min_accuracy. The number falls with labels; for groups near the target it stays "
                    "high.",
                    looks.COUNT,
                    0,
                    nothing="no alerts.min_accuracy is configured",
                ),
                Query(shown("credence_group_labels_to_decision", *_CHOSEN, by="group"), "{{group}}"),
                height=9,
            )
        )
    )
