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
            "Every model that Credence watches, one row each: how accurate it is and how sure we are, "
            "where it is probably below its target, and whether labels still come.",
        )
        .with_row(build.Row("Now"))
        .with_panel(
            number(
                Says("Models", "Models of which Credence has computed estimates.", looks.COUNT, 0),
                Query(f"count({shown('credence_snapshot_timestamp_seconds')}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Groups probably below target",
                    "Groups, of all models and all groupings that you configured, whose accuracy is below "
                    "alerts.min_accuracy with at least the configured confidence. Above 0, look at the "
                    "worst groups in the table.",
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
                    "Alerts of Credence's rules that fire now; the table below names them.",
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
                    "Labels that all budgets still allow in their current periods. At 0 nobody is asked "
                    "until a new window begins.",
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
                    "Age of the oldest estimates among all models. It should stay near the time of one "
                    "tick; if it grows, nothing on these dashboards is current.",
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
                    "Label requests that people answered in the last hour, of all models.",
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
                    "Posterior mean of each model's accuracy over all its traffic; the model's dashboard "
                    "has the interval.",
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
                    "How many groups of each model are below alerts.min_accuracy with the configured "
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
                    "How fast people answer label requests, by model.",
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
            "One row a model, the likeliest trouble first. The credible interval is from lower to upper. "
            "The worst group is the one most probably below alerts.min_accuracy among the groupings that "
            "you have configured; what is orange or vermillion deserves a look. The model's and the "
            "group's name lead to the model's dashboard.",
            looks.PLAIN,
            nothing="no model has been seen",
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
