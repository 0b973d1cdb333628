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
_ABOUT_A_MODEL = promql.firing('model!=""')
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
                Says(
                    "Age of estimates",
                    "Age of the oldest estimates of all models; it should stay near schedule.tick_seconds. "
                    "If it grows, all else here is out of date. If there are none, check that Credence runs "
                    "and that Prometheus scrapes it.",
                    looks.SECONDS,
                    0,
                    steps=looks.SNAPSHOT_AGE,
                    words=looks.NO_ESTIMATES,
                ),
                Query(promql.snapshot_age()),
            )
        )
        .with_panel(
            number(
                Says("Models", "Models with estimates.", looks.COUNT, 0, steps=looks.NONE_IS_BAD),
                Query(f"count({shown('credence_snapshot_timestamp_seconds')}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Alerts firing",
                    "Firing alerts of Credence; the table below lists them.",
                    looks.COUNT,
                    0,
                    steps=looks.FLAG,
                ),
                Query(f"count({promql.FIRING}) or vector(0)"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Groups below target",
                    "Groups of all models and configured groupings whose accuracy is below "
                    "their target with the configured confidence. If above 0, check the worst groups "
                    "in the table.",
                    looks.COUNT,
                    0,
                    nothing="no estimates",
                    steps=looks.ANY_IS_BAD,
                ),
                Query(promql.known(f"sum({_GROUPS_BELOW})")),
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
                    nothing="no estimates or assessment",
                    steps=looks.NONE_IS_BAD,
                ),
                Query(f"sum({shown('credence_assessment_budget_remaining_labels')})"),
            )
        )
        .with_panel(
            number(
                Says(
                    "Labels in the last hour",
                    "Label requests of all models that were answered in the last hour.",
                    looks.COUNT,
                    0,
                    nothing="no estimates",
                ),
                Query(
                    promql.known(
                        "sum(max by (model, assessment) "
                        f"(increase({promql.series('credence_requests_total', _ANSWERED)}[1h])))"
                    )
                ),
            )
        )
        .with_panel(firing_alerts())
        .with_panel(_models())
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
                    "Groups below target",
                    "Number of groups of each model that are below their target with the configured "
                    "confidence.",
                    looks.COUNT,
                    0,
                    nothing="no model has a target of accuracy",
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
            "group has the highest probability of being below its target among the "
            "configured groupings. `Below` and `Miscalibrated` are numbers of groups. Check values in "
            "orange and vermillion. Click a model or a group to open its dashboard.",
            looks.PLAIN,
        ),
        {"model": "Model", "group": "Worst group", "grouping": "Grouping"},
        [
            Column(
                "P(below target)",
                f"topk by (model) (1, {shown(_BELOW, promql.OF_PEOPLE)})",
                looks.RATIO,
                1,
                looks.PROBABILITY,
                width=120,
            ),
            _column("Alerts", f"count by (model) ({_ABOUT_A_MODEL})", steps=looks.FLAG, missing="0"),
            _column("Below", _GROUPS_BELOW, steps=looks.ANY_IS_BAD),
            _column("Miscalibrated", _GROUPS_MISCALIBRATED, steps=looks.ANY_IS_BAD, width=110),
            *(
                Column(
                    title,
                    shown(f"credence_group_accuracy_{end}_ratio", _OVERALL, by="model"),
                    looks.RATIO,
                    1,
                    width=85,
                )
                for end, title in (("lower", "Lower"), ("mean", "Accuracy"), ("upper", "Upper"))
            ),
            Column(
                "Target",
                shown("credence_group_min_accuracy_ratio", _OVERALL, by="model"),
                looks.RATIO,
                1,
                width=80,
            ),
            _column(
                "Labels left", f"sum by (model) ({shown('credence_assessment_budget_remaining_labels')})"
            ),
            Column(
                "Last label",
                age("credence_last_label_timestamp_seconds"),
                looks.SECONDS,
                0,
                looks.LABEL_AGE,
                missing="no label yet",
                width=110,
            ),
            Column(
                "Estimates",
                age("credence_snapshot_timestamp_seconds"),
                looks.SECONDS,
                0,
                looks.SNAPSHOT_AGE,
                width=95,
            ),
        ],
        links={
            "Model": [link_to_model("Model")],
            "Worst group": [link_to_model("Model", "Grouping", "Worst group")],
        },
        sort="P(below target)",
        height=8,
    )


def _column(
    name: str, expression: str, *, steps: looks.Steps | None = None, missing: str = "-", width: int = 90
) -> Column:
    return Column(name, expression, looks.COUNT, 0, steps, missing=missing, width=width)
