"""The row of a model's dashboard about an ensemble and its members; empty for models without one."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.models import dashboard as kinds

from deploy.grafana import looks
from deploy.grafana.frame import variable
from deploy.grafana.panels import Query, Says, band, lines, number
from deploy.grafana.promql import series, shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_AT = (_MODEL, 'assessment="$ensemble"')
_MEAN = "credence_ensemble_member_precision_mean_ratio"
_MISSED = "credence_ensemble_member_target_missed_probability"
_TARGET = "credence_ensemble_target_ratio"
_NOTHING = "no assessment of an ensemble"


def chosen() -> build.QueryVariable:
    """The assessment whose ensemble is shown; the variable has no value where there is none."""
    wanted = series("credence_ensemble_wanted_labels", _MODEL)
    return variable(
        "ensemble",
        "Ensemble",
        "The assessment of an ensemble.",
        f"label_values({wanted}, assessment)",
    ).sort(kinds.VariableSort.ALPHABETICAL_ASC)


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Ensembles").collapsed(True))
    for says, expression in _numbers():
        board = board.with_panel(number(says, Query(expression), width=6))
    for panel in (_members(), _itself(), _precision(), _misses(), _labels(), _costs()):
        board = board.with_panel(panel)
    return board


def _numbers() -> list[tuple[Says, str]]:
    return [
        _number(
            "Labels wanted",
            "Target number of labels for each member, and for the ensemble itself.",
            "credence_ensemble_wanted_labels",
        ),
        _number(
            "Labels there",
            "Labels of items that the ensemble or a member predicts as positive, each counted once, "
            "requested by any assessment.",
            "credence_ensemble_labels",
        ),
        _number(
            "Labels to go",
            "Labels still to be requested until each member has its target number.",
            "credence_ensemble_needed_labels",
        ),
        _number(
            "Saved by sharing",
            "Share of labels saved so far, compared with the same number for each member without "
            "sharing. The maximum is 75% for three members and the ensemble.",
            "credence_ensemble_saving_ratio",
            unit=looks.RATIO,
            decimals=1,
        ),
    ]


def _number(
    title: str, text: str, metric: str, *, unit: str = looks.COUNT, decimals: int = 0
) -> tuple[Says, str]:
    return Says(title, text, unit, decimals, nothing=_NOTHING), shown(metric, *_AT, by="")


def _members() -> table.Panel:
    def column(name: str, metric: str, unit: str = looks.RATIO, steps: looks.Steps | None = None) -> Column:
        return Column(name, shown(metric, *_AT, by="member"), unit, 1, steps)

    return grid(
        Says(
            "Members",
            "Precision of each member: credible interval; probability of missing the target; labels; "
            "and share of the traffic that the member predicts as positive. `ensemble` is the "
            "ensemble's own decision.",
            looks.PLAIN,
        ),
        {"member": "Member"},
        [
            *(
                column(end.capitalize(), f"credence_ensemble_member_precision_{end}_ratio")
                for end in ("lower", "mean", "upper")
            ),
            column("Missed", _MISSED, steps=looks.PROBABILITY),
            column("Labels", "credence_ensemble_member_labels", looks.COUNT),
            column("Predicted positive", "credence_ensemble_member_positive_share_ratio"),
        ],
        sort="Missed",
    )


def _itself() -> timeseries.Panel:
    return band(
        Says(
            "Precision of the ensemble",
            "Precision of the ensemble's own decision: credible interval, and the target.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        "credence_ensemble_member_precision_{}_ratio",
        (*_AT, 'member="ensemble"'),
        _TARGET,
        limit="target",
    )


def _precision() -> timeseries.Panel:
    return lines(
        Says(
            "Precision of members",
            "Posterior mean of each member, and the target. The table above has the intervals.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        Query(shown(_MEAN, *_AT, by="member"), "{{member}}"),
        Query(shown(_TARGET, *_AT, by=""), "the target"),
        colours={"the target": looks.VERMILLION},
    )


def _misses() -> timeseries.Panel:
    return lines(
        Says(
            "P(target missed) by member",
            "Posterior probability that a member's precision is below the target, and "
            "alerts.confidence, at which it counts as missed.",
            looks.RATIO,
            1,
            nothing="no target is configured",
            bounds=looks.PROBABLE,
        ),
        Query(shown(_MISSED, *_AT, by="member"), "{{member}}"),
        Query(shown("credence_alert_confidence_ratio", _MODEL, by=""), "counts as missed"),
        colours={"counts as missed": looks.VERMILLION},
    )


def _labels() -> timeseries.Panel:
    return lines(
        Says(
            "Labels of members",
            "Labels of items that each member predicts as positive, and the target number.",
            looks.COUNT,
            0,
            nothing=_NOTHING,
        ),
        Query(shown("credence_ensemble_member_labels", *_AT, by="member"), "{{member}}"),
        Query(shown("credence_ensemble_wanted_labels", *_AT, by=""), "wanted"),
        width=12,
        colours={"wanted": looks.VERMILLION},
    )


def _costs() -> timeseries.Panel:
    return lines(
        Says(
            "Labels so far, and to go",
            "Labels for the ensemble and its members, and labels still to be requested. Labels to go "
            "increase when traffic changes, or when old labels lose weight.",
            looks.COUNT,
            0,
            nothing=_NOTHING,
        ),
        Query(shown("credence_ensemble_labels", *_AT, by=""), "there"),
        Query(shown("credence_ensemble_needed_labels", *_AT, by=""), "to go"),
        width=12,
        colours={"there": looks.BLUE, "to go": looks.ORANGE},
    )
