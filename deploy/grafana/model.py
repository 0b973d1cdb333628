"""One model: how accurate and calibrated are its groups, how sure are we, and who is asked next?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import timeseries
from grafana_foundation_sdk.models import dashboard as kinds

from deploy.grafana import (
    looks,
    model_annotators,
    model_challenges,
    model_drift,
    model_ensembles,
    model_error_rates,
    model_evidence,
    model_groups,
    model_performance,
    model_questions,
    promql,
)
from deploy.grafana.frame import MODEL, dashboard, variable
from deploy.grafana.panels import Query, Says, lines, number
from deploy.grafana.promql import age, crossed, shown, shown_rate
from deploy.grafana.tables import firing_alerts

_MODEL = 'model="$model"'
_OVERALL = (_MODEL, 'grouping="all"')
_FIRING = promql.firing(_MODEL)
_BELOW = "credence_group_accuracy_below_threshold_probability"
_MEAN = "credence_group_accuracy_mean_ratio"


def _variables() -> list[build.QueryVariable]:
    # The likeliest trouble stands first, and is what the dashboard opens with; the groupings that nobody
    # configured stand last. What was shown last counts, so that the lists survive an outage.
    groupings = (
        f"{shown(_BELOW, _MODEL, promql.OF_PEOPLE, by='grouping', over='$__range')}"
        f" or 0 * {shown(_MEAN, _MODEL, promql.OF_PEOPLE, by='grouping', over='$__range')} - 1"
        f" or 0 * {shown(_MEAN, _MODEL, promql.NOT_VOTES, by='grouping', over='$__range')} - 2"
        f" or 0 * {shown(_MEAN, _MODEL, by='grouping', over='$__range')} - 3"
    )
    at = (_MODEL, 'grouping="$grouping"')
    groups = (
        f"{shown(_BELOW, *at, by='group', over='$__range')}"
        f" or -1 * {shown(_MEAN, *at, by='group', over='$__range')}"
    )
    models = promql.series("credence_snapshot_timestamp_seconds")
    return [
        variable(
            "model", "Model", "The model that the dashboard shows.", f"label_values({models}, model)"
        ).sort(kinds.VariableSort.ALPHABETICAL_ASC),
        variable(
            "grouping",
            "Grouping",
            "Grouping of the model's traffic; the one with the worst group comes first.",
            f"query_result(sort_desc({groupings}))",
        ).regex('/^\\{grouping="(.*)"\\} /'),
        variable(
            "group",
            "Groups",
            "Groups of the panels over time, sorted by probability of being below target.",
            f"query_result(sort_desc({groups}))",
        )
        .regex('/^\\{group="(.*)"\\} /')
        .multi(True),
        model_performance.chosen(),
        model_ensembles.chosen(),
        model_challenges.chosen(),
        model_error_rates.chosen(),
    ]


def model() -> build.Dashboard:
    """The dashboard of one model."""
    board = (
        dashboard(
            MODEL,
            "Credence: one model",
            "Estimates of one model and its groups with credible intervals, and its label requests.",
            _variables(),
            alerts=_FIRING,
            changes=model_evidence.CHANGES,
        )
        .with_row(build.Row("$model now"))
        .with_panel(number(*_estimates(), width=4))
        .with_panel(
            number(
                Says(
                    "Overall accuracy",
                    "Accuracy over all traffic: posterior mean, and credible interval. A wide interval means "
                    "that there are few labels, not that something is wrong.",
                    looks.RATIO,
                    1,
                    nothing="no estimates or traffic",
                ),
                *(
                    Query(shown(f"credence_group_accuracy_{end}_ratio", *_OVERALL, by=""), end)
                    for end in ("lower", "mean", "upper")
                ),
                width=6,
                text=True,
            )
        )
    )
    for says, expression, width in _numbers():
        board = board.with_panel(number(says, Query(expression), width=width))
    board = board.with_panel(firing_alerts(of_model=True, width=12, height=9)).with_panel(_accuracy())
    board = model_drift.row(model_evidence.row(model_groups.rows(board)))
    board = model_performance.row(board)
    for each in (model_ensembles, model_challenges, model_error_rates, model_annotators):
        board = each.row(board)
    return model_questions.rows(board)


def _estimates() -> tuple[Says, Query]:
    says = Says(
        "Age of estimates",
        "Age of the estimates on this dashboard; it should stay near schedule.tick_seconds. If it grows, all "
        "else here is out of date.",
        looks.SECONDS,
        0,
        steps=looks.SNAPSHOT_AGE,
        words=looks.NO_ESTIMATES,
    )
    return says, Query(promql.snapshot_age(_MODEL))


def _numbers() -> list[tuple[Says, str, int]]:
    return [
        (
            Says(
                "Groups below target, all groupings",
                "Groups in all configured groupings whose accuracy is below their target with the "
                "configured confidence.",
                looks.COUNT,
                0,
                nothing="no estimates",
                steps=looks.ANY_IS_BAD,
            ),
            promql.known(f"sum({crossed(_BELOW, _MODEL, promql.OF_PEOPLE)})", _MODEL),
            4,
        ),
        (
            Says(
                "Labels left",
                "Labels left in the budgets of all assessments in their current periods.",
                looks.COUNT,
                0,
                nothing="no estimates or assessment",
                steps=looks.NONE_IS_BAD,
            ),
            f"sum({shown('credence_assessment_budget_remaining_labels', _MODEL)})",
            4,
        ),
        (
            Says(
                "Last label",
                "Time since the latest label. If it grows while label requests are open, nobody answers "
                "them.",
                looks.SECONDS,
                0,
                nothing="no estimates or labels",
                steps=looks.LABEL_AGE,
            ),
            age("credence_last_label_timestamp_seconds", _MODEL, by=""),
            3,
        ),
        (
            Says(
                "Predictions",
                "Rate of predictions. Without traffic there is nothing to estimate, and no item to label.",
                looks.PER_SECOND,
                1,
                nothing="no estimates or traffic",
            ),
            shown_rate("credence_traffic_predictions_total", _MODEL),
            3,
        ),
    ]


def _accuracy() -> timeseries.Panel:
    groups = (_MODEL, 'grouping="$grouping"', 'group=~"$group"')
    ends = (("lower", "lower end"), ("mean", "accuracy"), ("upper", "upper end"))
    return lines(
        Says(
            "Accuracy over time",
            "The accuracy of the selected groups of the grouping with its credible interval, that of all "
            "traffic, and the groups' targets. When a line falls is when the model, or its traffic, changed.",
            looks.RATIO,
            1,
            nothing="no estimates or traffic",
        ),
        *(
            Query(
                shown(f"credence_group_accuracy_{end}_ratio", *groups, by="group"), f"{{{{group}}}}: {words}"
            )
            for end, words in ends
        ),
        Query(shown(_MEAN, *_OVERALL), "all traffic"),
        Query(shown("credence_group_min_accuracy_ratio", *groups, by="group"), "{{group}}: target"),
        width=12,
        height=9,
    )
