"""The rows of a model's dashboard that are about its assessments: what is found, asked and answered."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from deploy.grafana import looks, promql
from deploy.grafana.panels import Query, Says, bars, lines
from deploy.grafana.promql import age, shown, shown_rate

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_EVENTS = {
    "issued": looks.BLUE,
    "reissued": looks.SKY,
    "answered": looks.GREEN,
    "corrected": looks.PURPLE,
    "retracted": looks.GREY,
    "skipped": looks.ORANGE,
    "expired": looks.VERMILLION,
}


def rows(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with these rows."""
    board = _answers(board.with_row(build.Row("Assessments")))
    board = _requests(board.with_row(build.Row("Label requests")))
    return _unrequested(board.with_row(build.Row("Labels without a request").collapsed(True)))


def _answers(board: build.Dashboard) -> build.Dashboard:
    compared = "credence_assessment_comparison_{}_probability"
    return (
        board.with_panel(
            bars(
                Says(
                    "P(group is among the extremes)",
                    "Posterior probability that a group is among the top_m groups of an identification. Near "
                    "100% the group is identified. At most twenty groups.",
                    looks.RATIO,
                    1,
                    nothing="no assessment identifies groups",
                    bounds=looks.PROBABLE,
                ),
                Query(
                    f"topk(20, {shown('credence_assessment_group_extreme_probability', _MODEL)})",
                    "{{assessment}}: {{group}}",
                ),
                key="assessment",
                height=9,
            )
        )
        .with_panel(
            bars(
                Says(
                    "Next label request",
                    "Probability that the next label request of an assessment goes to a group. At most twenty"
                    " groups.",
                    looks.RATIO,
                    1,
                    nothing="no assessment",
                    bounds=looks.PROBABLE,
                ),
                Query(
                    f"topk(20, {shown('credence_assessment_group_next_probability', _MODEL)})",
                    "{{assessment}}: {{group}}",
                ),
                key="assessment",
                height=9,
            )
        )
        .with_panel(
            bars(
                Says(
                    "Comparisons",
                    "Posterior probabilities of each comparison: the first group is less accurate than the "
                    "second, the difference is within the region of practical equivalence, or the first is "
                    "more accurate.",
                    looks.RATIO,
                    1,
                    nothing="no assessment compares groups",
                    bounds=looks.PROBABLE,
                ),
                *(
                    Query(shown(compared.format(side), _MODEL), f"{{{{assessment}}}}: {words}")
                    for side, words in (
                        ("below", "{{first}} less accurate than {{second}}"),
                        ("within", "practically equivalent"),
                        ("above", "{{first}} more accurate than {{second}}"),
                    )
                ),
                key="assessment",
                height=9,
            )
        )
    )


def _requests(board: build.Dashboard) -> build.Dashboard:
    events = f"{promql.PER_HOUR} * sum by (event) ({shown_rate('credence_requests_total', _MODEL)})"
    return (
        board.with_panel(
            lines(
                Says(
                    "Label budget",
                    "Labels left in the current period of each assessment, labels that can be requested now, "
                    "and labels reserved for suspected groups. At 0 left, no labels are requested until the "
                    "budget renews.",
                    looks.COUNT,
                    0,
                    nothing="no assessment",
                ),
                Query(
                    shown("credence_assessment_budget_remaining_labels", _MODEL, by="assessment"),
                    "{{assessment}}: left",
                ),
                Query(
                    shown("credence_assessment_budget_available_labels", _MODEL, by="assessment"),
                    "{{assessment}}: available now",
                ),
                Query(
                    shown("credence_assessment_budget_reserve_labels", _MODEL, by="assessment"),
                    "{{assessment}}: reserve",
                ),
                Query(
                    shown("credence_assessment_budget_labels", _MODEL, by="assessment"),
                    "{{assessment}}: allowed",
                ),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Requests by event",
                    "Label requests per hour, by event. If many are skipped or expire, ask the labelling "
                    "team.",
                    looks.PER_HOUR,
                    1,
                    nothing="no assessment",
                ),
                Query(events, "{{event}}"),
                width=6,
                colours=_EVENTS,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Open requests",
                    "Open label requests by assessment.",
                    looks.COUNT,
                    0,
                    nothing="no assessment",
                ),
                Query(shown("credence_requests_open", _MODEL, by="assessment"), "{{assessment}}"),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Oldest open request",
                    "Age of the oldest open label request.",
                    looks.SECONDS,
                    0,
                    nothing="no request is open",
                ),
                Query(
                    age("credence_requests_oldest_timestamp_seconds", _MODEL, by="assessment"),
                    "{{assessment}}",
                ),
                width=6,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Requests without a label",
                    "Share of the ended label requests that were skipped or have expired, and of "
                    "those whose items estimates allow to have any true class: accuracy intervals are that "
                    "much wider.",
                    looks.RATIO,
                    1,
                    nothing="fewer than 20 requests have ended",
                ),
                Query(shown("credence_model_unanswered_ratio", _MODEL), "without a label"),
                Query(shown("credence_model_worst_case_ratio", _MODEL), "any true class allowed for"),
                width=12,
            )
        )
        .with_panel(
            bars(
                Says(
                    "Requests without a label, by group",
                    "Share of the ended label requests for a group's items that were skipped or have "
                    "expired. At most twenty groups of the grouping.",
                    looks.RATIO,
                    1,
                    nothing="no request has ended",
                    bounds=looks.PROBABLE,
                ),
                Query(
                    f"topk(20, {shown('credence_group_unanswered_ratio', *_ALL_GROUPS, by='group')})",
                    "{{group}}",
                ),
                key="group",
                height=9,
            )
        )
    )


def _unrequested(board: build.Dashboard) -> build.Dashboard:
    results = (
        f"{promql.PER_HOUR} * sum by (result) ({shown_rate('credence_unrequested_labels_total', _MODEL)})"
    )
    nothing = "no `unrequested_labels`"
    return (
        board.with_panel(
            lines(
                Says(
                    "Bias of unrequested labels",
                    "Accuracy of items with an unrequested label minus that of all traffic, with its "
                    "credible interval. Estimates allow for it.",
                    looks.RATIO,
                    nothing="`unrequested_labels.items` is not `unknown`",
                ),
                Query(shown("credence_model_selection_bias_upper_ratio", _MODEL), "upper end"),
                Query(shown("credence_model_selection_bias_mean_ratio", _MODEL), "mean"),
                Query(shown("credence_model_selection_bias_lower_ratio", _MODEL), "lower end"),
                width=12,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Unrequested labels by result",
                    "Labels without a request per hour, by result. If many are early, no_prediction or "
                    "dropped, compare the item ids of labels and predictions.",
                    looks.PER_HOUR,
                    1,
                    nothing=nothing,
                ),
                Query(results, "{{result}}"),
                width=12,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Predictions that wait for a label",
                    "Predictions that wait for unrequested labels, and hours of predictions that were "
                    "dropped because too many waited.",
                    looks.COUNT,
                    0,
                    nothing=nothing,
                ),
                Query(shown("credence_unrequested_waiting_items", _MODEL), "predictions"),
                Query(shown("credence_unrequested_dropped_cohorts", _MODEL), "dropped hours"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Share of predictions that is kept",
                    "Share of the predictions that waits for unrequested labels. It is below 100% if more "
                    "than bounds.join_items would wait; then they are an even sample.",
                    looks.RATIO,
                    1,
                    nothing=nothing,
                    bounds=looks.PROBABLE,
                ),
                Query(shown("credence_unrequested_sample_ratio", _MODEL), "kept"),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Delay of unrequested labels",
                    "Time within which half and 99% of the labels came, and the age of the oldest "
                    "predictions that wait. If 99% is near wait_days, labels may be missing.",
                    looks.SECONDS,
                    0,
                    nothing=nothing,
                ),
                Query(
                    shown("credence_unrequested_label_delay_seconds", _MODEL, by="quantile"),
                    "label, quantile {{quantile}}",
                ),
                Query(age("credence_unrequested_oldest_cohort_timestamp_seconds", _MODEL), "oldest waiting"),
            )
        )
    )
