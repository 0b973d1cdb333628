"""All models, one row each: which one needs a look?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table

from deploy.grafana import looks, promql
from deploy.grafana.frame import FLEET, dashboard, link_to_model
from deploy.grafana.panels import Query, Says, lines, number
from deploy.grafana.promql import age, crossed, shown, shown_rate
from deploy.grafana.tables import Column, firing_alerts, grid

_OVERALL = 'grouping="all"'
_ANSWERED = 'event="answered"'
_BELOW = "credence_group_accuracy_below_threshold_probability"
_MISCALIBRATED = "credence_group_ece_above_threshold_probability"
_GROUPS_BELOW = crossed(_BELOW, promql.OF_PEOPLE)
_GROUPS_MISCALIBRATED = crossed(_MISCALIBRATED, promql.NOT_ALL, times=2)


def fleet() -> build.Dashboard:
    """The dashboard of all models."""
    return (
        dashboard(
            FLEET,
            "Credence: all models",
            "All models that Credence monitors: accuracy with its interval, groups that are probably "
            "below target, and labels.",
        )
        .with_row(build.Row("Now"))
        .with_panel(
            number(
                Says("Models", "Models with estimates.", looks.COUNT, 0),
                Query(f"count({shown('credence_snapshot_timestamp_seconds')}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Groups probably below target",
                    "Groups of all models and configured groupings whose accuracy is below "
                    "alerts.min_accuracy with the configured confidence. If above 0, check the worst groups "
                    "in the table.",
                    looks.COUNT,
                    0,
                    steps=looks.ANY_IS_BAD,
                ),
                Query(f"sum({_GROUPS_BELOW}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Alerts firing",
                    "Firing alerts of Credence; the table below lists them.",
                    looks.COUNT,
                    0,
                    steps=looks.ANY_IS_BAD,
                ),
                Query(f"count({promql.FIRING}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Labels left",
                    "Labels left in all budgets in their current periods. At 0 no labels are requested until "
                    "a budget renews.",
                    looks.COUNT,
                    0,
                    nothing="no assessment",
                    steps=looks.NONE_IS_BAD,
                ),
                Query(f"sum({shown('credence_assessment_budget_remaining_labels')})"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Oldest snapshot",
                    "Age of the oldest estimates of all models. It should stay near schedule.tick_seconds. If"
                    " it grows, these dashboards are out of date.",
                    looks.SECONDS,
                    0,
                    steps=looks.SNAPSHOT_AGE,
                ),
                Query(f"max({age('credence_snapshot_timestamp_seconds')})"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Labels in the last hour",
                    "Label requests of all models that were answered in the last hour.",
                    looks.COUNT,
                    0,
                ),
                Query(
                    "sum(max by (model, assessment) "
                    f"(increase({promql.series('credence_requests_total', _ANSWERED)}[1h]))) or vector(0)"
                ),
            )
        )
        .with_panel(_models())
        .with_panel(firing_alerts(promql.FIRING))
        .with_row(build.Row("Over time"))
        .with_panel(
            lines(
                Says(
                    "Overall accuracy",
                    "Posterior mean of each model's accuracy over all traffic. The model's dashboard has the "
                    "interval.",
                    looks.RATIO,
                    1,
                ),
                Query(shown("credence_group_accuracy_mean_ratio", _OVERALL, by="model"), "{{model}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Groups probably below target",
                    "Number of groups of each model that are below alerts.min_accuracy with the configured "
                    "confidence.",
                    looks.COUNT,
                    0,
                    nothing="no model has alerts.min_accuracy",
                ),
                Query(_GROUPS_BELOW, "{{model}}"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Labels answered per hour",
                    "Answered label requests by model.",
                    looks.PER_HOUR,
                    1,
                    nothing="no assessment",
                ),
                Query(
                    f"{promql.PER_HOUR} * sum by (model) "
                    f"({shown_rate('credence_requests_total', _ANSWERED)})",
                    "{{model}}",
                ),
            )
        )
    )


def _models() -> table.Panel:
    return grid(
        Says(
            "Models",
            "One row per model, sorted by the probability that a group is below target. The worst "
            "group has the highest probability of being below alerts.min_accuracy among the "
            "configured groupings. Check values in orange and vermillion. Click a model or a group to"
            " open its dashboard.",
            looks.PLAIN,
            nothing="no model",
        ),
        {"model": "Model", "grouping": "Worst group's grouping", "group": "Worst group"},
        [
            Column(
                "Probability",
                f"topk by (model) (1, {shown(_BELOW, promql.OF_PEOPLE)})",
                looks.RATIO,
                1,
                looks.PROBABILITY,
            ),
            Column("Alerts", f"count by (model) ({promql.FIRING})", looks.COUNT, 0, looks.ANY_IS_BAD),
            Column("Groups below target", _GROUPS_BELOW, looks.COUNT, 0, looks.ANY_IS_BAD),
            Column("Groups miscalibrated", _GROUPS_MISCALIBRATED, looks.COUNT, 0, looks.ANY_IS_BAD),
            *(
                Column(
                    f"Accuracy {end}",
                    shown(f"credence_group_accuracy_{end}_ratio", _OVERALL, by="model"),
                    looks.RATIO,
                    1,
                )
                for end in ("lower", "mean", "upper")
            ),
            Column("Target", shown("credence_alert_min_accuracy_ratio"), looks.RATIO, 1),
            Column(
                "Labels left",
                f"sum by (model) ({shown('credence_assessment_budget_remaining_labels')})",
                looks.COUNT,
                0,
            ),
            Column(
                "Last label", age("credence_last_label_timestamp_seconds"), looks.SECONDS, 0, looks.LABEL_AGE
            ),
            Column(
                "Snapshot", age("credence_snapshot_timestamp_seconds"), looks.SECONDS, 0, looks.SNAPSHOT_AGE
            ),
        ],
        links={
            "Model": [link_to_model("Model")],
            "Worst group": [link_to_model("Model", "Worst group's grouping", "Worst group")],
        },
        sort="Probability",
        height=9,
    )
