"""The row of a model's dashboard about drift: how far traffic is from its reference, without labels."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries

from deploy.grafana import looks
from deploy.grafana.frame import link_to_group
from deploy.grafana.panels import Query, Says, lines, number
from deploy.grafana.promql import age, counted_rate, shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_CHOSEN = (*_ALL_GROUPS, 'group=~"$group"')
_SUSPICION = "credence_group_drift_score"
_DISTANCE = "credence_group_drift_distance"
_LIMIT = "credence_drift_max_distance_ratio"
_NOTHING = "no estimates or reference"
_REASONS = {"policy": looks.BLUE, "drift": looks.ORANGE, "reference": looks.GREEN, "gold": looks.PURPLE}


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Drift (no labels needed)"))
    for says, expression in _numbers():
        board = board.with_panel(number(says, Query(expression), width=6))
    for panel in (_groups(), _scores(), _mixes(), _reasons()):
        board = board.with_panel(panel)
    return board


def _numbers() -> list[tuple[Says, str]]:
    return [
        (
            Says(
                "Drifted groups",
                "Groups in the selected grouping whose drift score exceeds drift.max_distance.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
                steps=looks.ANY_IS_BAD,
            ),
            shown("credence_grouping_groups_drifted", *_ALL_GROUPS, by=""),
        ),
        (
            Says(
                "Reference",
                "Predictions in the reference: the first ones, or those in the time window set with "
                "`credence reference set`.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
            ),
            shown("credence_drift_reference_predictions", _MODEL, by=""),
        ),
        (
            Says(
                "Reference ended",
                "Time since the end of the reference. Set a new reference after an intended change.",
                looks.SECONDS,
                0,
                nothing=_NOTHING,
            ),
            age("credence_drift_reference_end_timestamp_seconds", _MODEL, by=""),
        ),
        (
            Says(
                "Recent",
                "Recent predictions that are compared with the reference: those of the last "
                "drift.window_hours, or since the reference.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
            ),
            shown("credence_drift_recent_predictions", _MODEL, by=""),
        ),
    ]


def _groups() -> table.Panel:
    def column(
        name: str, metric: str, *more: str, unit: str = looks.RATIO, steps: looks.Steps | None = None
    ) -> Column:
        return Column(name, shown(metric, *_ALL_GROUPS, *more, by="group"), unit, 2, steps)

    return grid(
        Says(
            "Groups by drift score",
            "Drift score: Jensen-Shannon distance of recent traffic from the reference, in excess of "
            "noise; the largest distance including noise; the Kolmogorov-Smirnov statistic of the "
            "scores; recent predictions (0 without recent traffic); volume relative to the reference;"
            " and the accuracy expected from scores, with the probability that the group is less "
            "accurate than expected.",
            looks.PLAIN,
        ),
        {"group": "Group"},
        [
            column("Drift score", _SUSPICION),
            column("Distance", _DISTANCE),
            column("Scores differ", "credence_group_ks_statistic"),
            column("Recent predictions", "credence_group_recent_predictions", unit=looks.COUNT),
            column("Volume", "credence_group_volume_ratio"),
            column("Expected accuracy", "credence_group_expected_accuracy_ratio"),
            column(
                "P(below expected)",
                "credence_group_below_expected_probability",
                steps=looks.PROBABILITY,
            ),
            Column(
                "Drifted",
                shown("credence_group_drifted", *_ALL_GROUPS, by="group"),
                looks.PLAIN,
                0,
                looks.FLAG,
                looks.YES_NO,
            ),
        ],
        links={"Group": link_to_group("Group")},
        sort="Drift score",
        height=9,
    )


def _scores() -> timeseries.Panel:
    return lines(
        Says(
            "Drift score over time",
            "Drift score of each selected group, and drift.max_distance.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        Query(shown(_SUSPICION, *_CHOSEN, by="group"), "{{group}}"),
        Query(shown(_LIMIT, _MODEL, by=""), "has drifted"),
        colours={"has drifted": looks.VERMILLION},
    )


def _mixes() -> timeseries.Panel:
    return lines(
        Says(
            "Distance from the reference over time, all traffic",
            "Jensen-Shannon distance of all recent traffic from the reference, for scores, predicted "
            "classes, and values of each attribute. It includes noise.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        Query(shown(_DISTANCE, _MODEL, 'grouping="all"', by="mix"), "{{mix}}"),
        Query(shown(_LIMIT, _MODEL, by=""), "drift.max_distance"),
        colours={"drift.max_distance": looks.VERMILLION},
    )


def _reasons() -> timeseries.Panel:
    return lines(
        Says(
            "Label requests by reason",
            "Issued label requests by reason: the policy chose the group, the group has drifted, "
            "its reference for declines is incomplete, or the item is a gold item.",
            looks.PER_SECOND,
            3,
            nothing="no assessment",
        ),
        *(
            Query(
                counted_rate("credence_requests_chosen_total", "reason", _MODEL, f'reason="{reason}"'), reason
            )
            for reason in _REASONS
        ),
        colours=_REASONS,
        stacked=True,
    )
