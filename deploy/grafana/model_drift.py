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
_NOTHING = "no reference yet"
_REASONS = {"policy": looks.BLUE, "drift": looks.ORANGE, "reference": looks.GREEN}


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Drift, without labels"))
    for says, expression in _numbers():
        board = board.with_panel(number(says, Query(expression), width=6))
    for panel in (_groups(), _suspicion(), _mixes(), _reasons()):
        board = board.with_panel(panel)
    return board


def _numbers() -> list[tuple[Says, str]]:
    return [
        (
            Says(
                "Groups that have drifted",
                "Groups of the chosen grouping whose recent traffic is farther from the reference, noise "
                "taken off, than drift.max_distance.",
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
                "Predictions that recent traffic is compared with: the first ones, or those of the window "
                "that `credence reference set` has set.",
                looks.COUNT,
                0,
                nothing=_NOTHING,
            ),
            shown("credence_drift_reference_predictions", _MODEL, by=""),
        ),
        (
            Says(
                "Reference ended",
                "Time since the end of the reference. Set it again when a change is known and right.",
                looks.SECONDS,
                0,
                nothing=_NOTHING,
            ),
            age("credence_drift_reference_end_timestamp_seconds", _MODEL, by=""),
        ),
        (
            Says(
                "Recent",
                "Predictions that are compared with the reference: those of the last drift.window_hours, or "
                "since the reference.",
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
            "Groups, by how far they have drifted",
            "Drift score: how far recent traffic is from the reference, noise taken off; the Jensen-Shannon "
            "distance of the mix that is farthest, noise included; the largest difference of the cumulative "
            "shares of scores; recent predictions, 0 where there is no recent traffic; volume over that of "
            "the reference; and the accuracy that scores promise, with the probability that the group is "
            "less accurate than that.",
            looks.PLAIN,
            nothing=_NOTHING,
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
                "Less accurate than that",
                "credence_group_below_expected_probability",
                steps=looks.PROBABILITY,
            ),
            column("Drifted", "credence_group_drifted", unit=looks.PLAIN),
        ],
        links={"Group": link_to_group("Group")},
        sort="Drift score",
        height=9,
    )


def _suspicion() -> timeseries.Panel:
    return lines(
        Says(
            "Drift of groups over time",
            "How far the recent traffic of each chosen group is from the reference, noise taken off, and "
            "drift.max_distance.",
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
            "Drift of all traffic over time",
            "The Jensen-Shannon distance of all recent traffic from the reference, by what is compared: "
            "scores, predicted classes, or values of an attribute. A little of it is noise.",
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
            "Requests that were issued, by what chose their group: the policy of an assessment, drift, "
            "or the reference for declines.",
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
