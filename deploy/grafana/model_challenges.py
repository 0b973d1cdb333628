"""The row of a model's dashboard about a challenger; empty for models without one."""

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
_AT = (_MODEL, 'assessment="$challenge"')
_OVERALL = (*_AT, 'grouping="all"', 'group="all"')
_MARGIN = "credence_challenge_margin_ratio"
_NOTHING = "no assessment of a challenger"


def chosen() -> build.QueryVariable:
    """The assessment whose challenger is shown; the variable has no value where there is none."""
    return variable(
        "challenge",
        "Challenge",
        "The assessment whose challenger is shown.",
        f"label_values({series(_MARGIN, _MODEL)}, assessment)",
    ).sort(kinds.VariableSort.ALPHABETICAL_ASC)


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Challenger").collapsed(True))
    for says, expression in _numbers():
        board = board.with_panel(number(says, Query(expression), width=6))
    for panel in (_groups(), _difference(), _probabilities(), _evidence()):
        board = board.with_panel(panel)
    return board


def _numbers() -> list[tuple[Says, str]]:
    def of(
        title: str, text: str, metric: str, at: tuple[str, ...], unit: str = looks.RATIO
    ) -> tuple[Says, str]:
        decimals = 0 if unit == looks.COUNT else 1
        return Says(title, text, unit, decimals, nothing=_NOTHING), shown(metric, *at, by="")

    return [
        of(
            "P(challenger is better)",
            "Posterior probability that the challenger is more accurate than the model over all "
            "traffic, by more than the margin.",
            "credence_challenge_better_probability",
            _OVERALL,
        ),
        of(
            "Margin",
            "A smaller difference in accuracy counts as none.",
            _MARGIN,
            _AT,
        ),
        of(
            "Known",
            "Share of the traffic with the challenger's predictions.",
            "credence_challenge_known_ratio",
            _AT,
        ),
        of(
            "Groups compared",
            "Groups in which the two are compared. The e-value limit for one group is multiplied by "
            "their number.",
            "credence_challenge_groups",
            _AT,
            looks.COUNT,
        ),
    ]


def _groups() -> table.Panel:
    def column(name: str, metric: str, unit: str = looks.RATIO, steps: looks.Steps | None = None) -> Column:
        return Column(name, shown(f"credence_challenge_{metric}", *_AT, by="group"), unit, 1, steps)

    return grid(
        Says(
            "Challenger by group",
            "Accuracy of the challenger minus the model: credible interval; probability of being "
            "better or worse by more than the margin; share of traffic on which the two disagree; and"
            " labels of disagreements. Group `all` is all traffic.",
            looks.PLAIN,
        ),
        {"group": "Group"},
        [
            *(column(end.capitalize(), f"difference_{end}_ratio") for end in ("lower", "mean", "upper")),
            column("Better", "better_probability"),
            column("Worse", "worse_probability", steps=looks.PROBABILITY),
            column("Disagree", "disagreement_ratio"),
            column("Labels", "labels", looks.COUNT),
        ],
        sort="Worse",
    )


def _difference() -> timeseries.Panel:
    return band(
        Says(
            "Challenger minus model",
            "Accuracy of the challenger minus the model over all traffic: credible interval, and the margin.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        "credence_challenge_difference_{}_ratio",
        _OVERALL,
        _MARGIN,
        limit="margin",
    )


def _probabilities() -> timeseries.Panel:
    return lines(
        Says(
            "P(challenger is worse)",
            "Posterior probability that the challenger is worse by more than the margin, by group.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
            bounds=looks.PROBABLE,
        ),
        Query(shown("credence_challenge_worse_probability", *_AT, by="group"), "{{group}}"),
    )


def _evidence() -> timeseries.Panel:
    return lines(
        Says(
            "E-values of the challenger",
            "E-values over all traffic. Without a difference, an e-value ever reaches 20 with a "
            "probability of at most 5%, under continuous monitoring.",
            looks.PLAIN,
            1,
            nothing=_NOTHING,
        ),
        # A logarithmic axis has no 0.
        *(
            Query(f"clamp_min({shown(f'credence_challenge_{side}_evidence', *_OVERALL, by='')}, 0.01)", side)
            for side in ("better", "worse")
        ),
        decades=True,
        colours={"better": looks.BLUE, "worse": looks.VERMILLION},
    )
