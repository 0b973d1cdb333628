"""The row of a model's dashboard about error rates of groups; empty for models without any."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import dashboard as kinds

from deploy.grafana import looks
from deploy.grafana.frame import variable
from deploy.grafana.panels import Query, Says, lines
from deploy.grafana.promql import series, shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_AT = (_MODEL, 'assessment="$rates"')
_NOTHING = "no assessment of error rates"
_RATES = {
    "false_positive_rate": "False positives",
    "false_negative_rate": "False negatives",
    "true_positive_rate": "True positives",
    "precision": "Precision",
    "selection_rate": "Selected",
}


def chosen() -> build.QueryVariable:
    """The assessment whose error rates are shown; the variable has no value where there is none."""
    return variable(
        "rates",
        "Error rates",
        "The assessment whose error rates are shown.",
        f"label_values({series('credence_error_rate_mean_ratio', _MODEL)}, assessment)",
    ).sort(kinds.VariableSort.ALPHABETICAL_ASC)


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Error rates").collapsed(True))
    for panel in (_groups(), _apart(), _ends("lower"), _ends("upper")):
        board = board.with_panel(panel)
    return board


def _groups() -> table.Panel:
    def column(name: str, rate: str) -> Column:
        where = (*_AT, f'rate="{rate}"')
        return Column(name, shown("credence_error_rate_mean_ratio", *where, by="group"), looks.RATIO, 1)

    beyond = f"sum by (group) ({shown('credence_error_rate_violated', *_AT)})"
    return grid(
        Says(
            "Error rates by group",
            "Posterior means of the rates for the assessment's positive class against the rest; how many of "
            "these are beyond their limit for sure; and labels.",
            looks.PLAIN,
        ),
        {"group": "Group"},
        [
            *(column(name, rate) for rate, name in _RATES.items()),
            Column("Beyond limits", beyond, looks.COUNT, 0),
            Column("Labels", shown("credence_error_rate_labels", *_AT, by="group"), looks.COUNT, 0),
        ],
        sort="Beyond limits",
    )


def _apart() -> table.Panel:
    def column(name: str, metric: str) -> Column:
        return Column(name, shown(f"credence_error_rate_{metric}", *_AT, by="rate"), looks.RATIO, 1)

    return grid(
        Says(
            "Differences between groups",
            "The highest rate of any group minus the lowest, and the lowest over the highest: interval and "
            "estimate. The configured limits are beside them.",
            looks.PLAIN,
        ),
        {"rate": "Rate"},
        [
            *(column(f"Difference, {end}", f"difference_{end}_ratio") for end in ("lower", "mean", "upper")),
            column("Maximum", "max_difference_ratio"),
            column("Difference too large", "difference_violated"),
            *(column(f"Ratio, {end}", f"quotient_{end}_ratio") for end in ("lower", "mean", "upper")),
            column("Minimum", "min_quotient_ratio"),
            column("Ratio too low", "quotient_violated"),
            column("Highest limit", "limit_ratio"),
        ],
        sort="Difference, lower",
    )


def _ends(end: str) -> timeseries.Panel:
    rate = 'rate="false_positive_rate"'
    return lines(
        Says(
            f"False positive rate, {end} ends",
            f"The {end} ends of the groups' intervals, which hold at once.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        Query(shown(f"credence_error_rate_{end}_ratio", *_AT, rate, by="group"), "{{group}}"),
    )
