"""The row of a model's dashboard about evidence that may be looked at any time, and about changes."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries

from deploy.grafana import looks
from deploy.grafana.frame import link_to_group
from deploy.grafana.panels import Query, Says, lines
from deploy.grafana.promql import shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_ALL_GROUPS = (_MODEL, 'grouping="$grouping"')
_CHANGED = "credence_group_confirmed_change_timestamp_seconds"
_ANEW = "credence_group_change_point_timestamp_seconds"
_NOTHING = "no assessment requests labels by this grouping"
_KINDS = {
    "below_threshold": "Below target",
    "declined": "Declined",
    "miscalibrated": "Miscalibrated",
    "changed": "Changed",
}

CHANGES = f"{shown(_CHANGED, *_ALL_GROUPS, by='group')} * 1000"
"""When groups of the chosen grouping became less accurate, in milliseconds, as annotations want it."""


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Anytime-valid evidence by $grouping"))
    return board.with_panel(_confirmed()).with_panel(_e_values()).with_panel(_bounds())


def _confirmed() -> table.Panel:
    return grid(
        Says(
            "Confirmed findings by group",
            "Yes if evidence confirms that a group is below its target, less accurate than its"
            " reference, miscalibrated, or has changed. The false discovery rate of all confirmed "
            "findings about the model is at most evidence.alpha, under continuous monitoring. "
            "`Changed at` is the most probable time of a confirmed decline. Labels from before "
            "`Change point` are down-weighted, because the accuracy has probably changed.",
            looks.PLAIN,
        ),
        {"group": "Group"},
        [
            *(
                Column(
                    title,
                    _group("credence_group_evidence_confirmed", _of(kind)),
                    looks.PLAIN,
                    0,
                    looks.FLAG,
                    looks.YES_NO,
                )
                for kind, title in _KINDS.items()
            ),
            Column("Changed at", f"{_group(_CHANGED)} * 1000", looks.TIME),
            Column("Change point", f"{_group(_ANEW)} * 1000", looks.TIME),
            Column("Labels", _group("credence_group_evidence_labels"), looks.COUNT, 0),
            Column("In reference", _group("credence_group_evidence_reference_labels"), looks.COUNT, 0),
        ],
        links={"Group": link_to_group("Group")},
        sort="Below target",
    )


def _e_values() -> timeseries.Panel:
    return lines(
        Says(
            "E-values against $grouping",
            "Decimal logarithm of the five highest e-values of each kind; 2 is an e-value of 100. A "
            "group that appeared later needs a higher e-value.",
            looks.PLAIN,
            2,
            nothing=_NOTHING,
        ),
        *(
            Query(
                f"topk(5, {_group('credence_group_evidence_log10', _of(kind))})",
                f"{title.lower()}: {{{{group}}}}",
            )
            for kind, title in _KINDS.items()
        ),
        width=12,
        height=9,
    )


def _bounds() -> timeseries.Panel:
    return lines(
        Says(
            "Confidence sequences of accuracy",
            "Bounds that are valid at every moment; the five lowest of each.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        *(
            Query(
                f"bottomk(5, {_group(f'credence_group_accuracy_confidence_sequence_{end}_ratio')})",
                f"{end}: {{{{group}}}}",
            )
            for end in ("lower", "upper")
        ),
        width=12,
        height=9,
    )


def _of(kind: str) -> str:
    return f'kind="{kind}"'


def _group(name: str, *matchers: str) -> str:
    return shown(name, *_ALL_GROUPS, *matchers, by="group")
