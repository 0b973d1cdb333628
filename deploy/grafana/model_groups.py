"""The rows of a model's dashboard that are about its groups."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries

from deploy.grafana import looks, model_calibration
from deploy.grafana.frame import link_to_group
from deploy.grafana.panels import Query, Says, band, bars, lines
from deploy.grafana.promql import series, shown
from deploy.grafana.tables import Column, columns_chart, grid

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_CHOSEN = (*_ALL_GROUPS, 'group=~"$group"')
_ENDS = ("lower", "mean", "upper")
_BELOW = "credence_group_accuracy_below_threshold_probability"
_TARGET = "credence_group_min_accuracy_ratio"
_MISCALIBRATED = "credence_group_ece_above_threshold_probability"


def rows(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with these rows."""
    board = board.with_row(build.Row("Groups of $grouping")).with_panel(_evidence())
    board = board.with_panel(_traffic()).with_panel(_weakest())
    board = _over_time(board.with_row(build.Row("$grouping $group over time").repeat("group")))
    return _labels(model_calibration.rows(board).with_row(build.Row("Labels")))


def _evidence() -> table.Panel:
    return grid(
        Says(
            "Groups by probability of being below target",
            "Sorted by P(below), the probability of being below `Target`. `Gap` is mean score "
            "minus accuracy: positive if the model is overconfident. `Labels` are effective ones. `Drift "
            "score` is how far recent traffic is from the reference, without noise. `Labels to go` and `Time "
            "to go` are what a verdict still takes. Click a group to show it below.",
            looks.PLAIN,
        ),
        {"group": "Group"},
        [
            Column("P(below)", _group(_BELOW), looks.RATIO, 1, looks.PROBABILITY, missing="no target"),
            *(
                Column(title, _group(f"credence_group_accuracy_{end}_ratio"), looks.RATIO, 1)
                for end, title in zip(_ENDS, ("Lower", "Accuracy", "Upper"), strict=True)
            ),
            Column("Target", _group(_TARGET), looks.RATIO, 1, missing="no target"),
            Column("Mean score", _group("credence_group_score_mean_ratio"), looks.RATIO, 1),
            Column("Gap", _group("credence_group_calibration_gap_ratio"), looks.RATIO, 1),
            Column("ECE", _group("credence_group_ece_mean_ratio"), looks.RATIO, 1),
            Column(
                "P(ECE high)", _group(_MISCALIBRATED), looks.RATIO, 1, looks.PROBABILITY, missing="no target"
            ),
            Column("Traffic", _group("credence_group_traffic_share_ratio"), looks.RATIO, 1),
            Column("Effective labels", _group("credence_group_effective_labels"), looks.COUNT, 1),
            Column("Drift score", _group("credence_group_drift_score"), looks.PLAIN, 2),
            Column("Labels to go", _group("credence_group_labels_to_decision"), looks.COUNT, 0),
            Column("Time to go", _group("credence_group_time_to_decision_seconds"), looks.SECONDS, 0),
        ],
        links={"Group": link_to_group("Group")},
        sort="P(below)",
        height=9,
    )


def _traffic() -> timeseries.Panel:
    return lines(
        Says(
            "Traffic in groups that fail or meet the target",
            "Share of traffic in groups that are below their target with the configured "
            "confidence, and in groups that meet it, including groups folded into `other`. The rest "
            "is undecided.",
            looks.RATIO,
            1,
            nothing="no target, as of score bins",
            bounds=looks.PROBABLE,
        ),
        *(
            Query(shown(f"credence_grouping_traffic_share_{name}_ratio", *_ALL_GROUPS, by=""), name)
            for name in ("failing", "meeting")
        ),
        width=12,
        height=6,
        colours={"failing": looks.VERMILLION, "meeting": looks.BLUE},
        stacked=True,
    )


def _weakest() -> timeseries.Panel:
    return lines(
        Says(
            "Accuracy of the weakest group",
            "Credible interval of the accuracy of the weakest group, whichever it is, and the lowest and "
            "highest target of any group. The group with the lowest estimate is not always the weakest: "
            "another one may have few labels.",
            looks.RATIO,
            1,
            nothing="a single group, or score bins",
        ),
        *(
            Query(shown(f"credence_grouping_weakest_accuracy_{end}_ratio", *_ALL_GROUPS, by=""), end)
            for end in ("lower", "upper")
        ),
        Query(f"min({series(_TARGET, *_ALL_GROUPS)})", "lowest target"),
        Query(shown(_TARGET, *_ALL_GROUPS, by=""), "highest target"),
        width=12,
        height=6,
        colours={
            "lower": looks.BLUE,
            "upper": looks.BLUE,
            "lowest target": looks.VERMILLION,
            "highest target": looks.VERMILLION,
        },
    )


def _group(name: str) -> str:
    return shown(name, *_ALL_GROUPS, by="group")


def _over_time(board: build.Dashboard) -> build.Dashboard:
    return (
        board.with_panel(
            band(
                Says(
                    "Accuracy of $group",
                    "Credible interval of the group's accuracy, and its target (dashed). If the "
                    "whole band is below the line, the group is probably below its target.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this group",
                ),
                "credence_group_accuracy_{}_ratio",
                _CHOSEN,
                _TARGET,
                width=6,
            )
        )
        .with_panel(
            band(
                Says(
                    "Calibration error of $group",
                    "Credible interval of the group's expected calibration error, and its limit.",
                    looks.RATIO,
                    1,
                    nothing="no traffic in this group",
                ),
                "credence_group_ece_{}_ratio",
                _CHOSEN,
                "credence_group_max_ece_ratio",
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
                    "its target. The number falls with labels; for groups near the target it stays "
                    "high.",
                    looks.COUNT,
                    0,
                    nothing="no group has a target",
                ),
                Query(shown("credence_group_labels_to_decision", *_CHOSEN, by="group"), "{{group}}"),
                height=9,
            )
        )
    )
