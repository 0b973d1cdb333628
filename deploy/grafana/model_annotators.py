"""The row of a model's dashboard about those who label; empty for models whose labels are the truth."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import table, timeseries

from deploy.grafana import looks
from deploy.grafana.panels import Query, Says, band, lines
from deploy.grafana.promql import shown
from deploy.grafana.tables import Column, grid

_MODEL = 'model="$model"'
_BELOW = "credence_vendor_reliability_below_threshold_probability"
_NOTHING = "no labels_per_item"
_LIMIT = "credence_alert_min_reliability_ratio"


def row(board: build.Dashboard) -> build.Dashboard:
    """The same dashboard with this row."""
    board = board.with_row(build.Row("Annotators and vendors").collapsed(True))
    for panel in (_vendors(), _reliability(), _below(), _agreement(), _alpha(), _times(), _bounds()):
        board = board.with_panel(panel)
    return board


def _vendors() -> table.Panel:
    def column(name: str, metric: str, unit: str = looks.RATIO, steps: looks.Steps | None = None) -> Column:
        return Column(name, shown(metric, _MODEL, by="vendor"), unit, 1, steps)

    return grid(
        Says(
            "Vendors",
            "Reliability of each vendor: share of the model's items about which its labels are right, with "
            "its credible interval; probability of being below alerts.min_reliability; agreement with "
            "others; labels; and people. The status page lists people.",
            looks.PLAIN,
        ),
        {"vendor": "Vendor"},
        [
            *(
                column(end.capitalize(), f"credence_vendor_reliability_{end}_ratio")
                for end in ("lower", "mean", "upper")
            ),
            column("P(below)", _BELOW, steps=looks.PROBABILITY),
            *(
                column(f"Agreement, {end}", f"credence_vendor_agreement_{end}_ratio")
                for end in ("lower", "mean", "upper")
            ),
            column("Labels", "credence_vendor_reliability_labels", looks.COUNT),
            column("Gold labels", "credence_vendor_gold_labels", looks.COUNT),
            *(
                column(f"Wrong about gold, {end}", f"credence_vendor_gold_wrong_{end}_ratio")
                for end in ("lower", "mean", "upper")
            ),
            column("People", "credence_vendor_annotators", looks.COUNT),
            column("People below", "credence_vendor_annotators_below_threshold", looks.COUNT),
        ],
        sort="P(below)",
    )


def _reliability() -> timeseries.Panel:
    return lines(
        Says(
            "Reliability of vendors",
            "Posterior mean of each vendor, and alerts.min_reliability. The table above has the intervals.",
            looks.RATIO,
            1,
            nothing=_NOTHING,
        ),
        Query(shown("credence_vendor_reliability_mean_ratio", _MODEL, by="vendor"), "{{vendor}}"),
        Query(shown(_LIMIT, _MODEL, by=""), "the threshold"),
        colours={"the threshold": looks.VERMILLION},
    )


def _below() -> timeseries.Panel:
    return lines(
        Says(
            "P(below threshold) by vendor",
            "Posterior probability that a vendor's reliability is below alerts.min_reliability, and "
            "alerts.confidence, from which on it counts as below.",
            looks.RATIO,
            1,
            nothing="no threshold is configured",
            bounds=looks.PROBABLE,
        ),
        Query(shown(_BELOW, _MODEL, by="vendor"), "{{vendor}}"),
        Query(shown("credence_alert_confidence_ratio", _MODEL, by=""), "counts as below"),
        colours={"counts as below": looks.VERMILLION},
    )


def _agreement() -> timeseries.Panel:
    return band(
        Says(
            "Agreement of two people",
            "Probability that two people give an item the same label, over all items, with its interval.",
            looks.RATIO,
            1,
            nothing="too few items have several labels",
        ),
        "credence_label_agreement_{}_ratio",
        (_MODEL,),
        width=8,
    )


def _alpha() -> timeseries.Panel:
    return lines(
        Says(
            "Krippendorff's alpha",
            "Agreement in excess of chance: 1 if all agree, 0 if as often as by chance; with its interval.",
            looks.PLAIN,
            2,
            nothing="too few items have several labels",
        ),
        *(
            Query(shown(f"credence_label_alpha_{end}", _MODEL, by=""), name)
            for end, name in (("lower", "lower"), ("mean", "estimate"), ("upper", "upper"))
        ),
        width=8,
        colours={"estimate": looks.BLUE},
    )


def _times() -> timeseries.Panel:
    return lines(
        Says(
            "Time to a label",
            "Median time from the first issue of a request to its label, by vendor. It includes the time "
            "until somebody takes the request.",
            looks.SECONDS,
            0,
            nothing=_NOTHING,
        ),
        Query(shown("credence_vendor_answer_seconds", _MODEL, by="vendor"), "{{vendor}}"),
        width=8,
    )


def _bounds() -> timeseries.Panel:
    return lines(
        Says(
            "Wrong first labels, at most",
            "Upper bounds of the shares of wrong first labels about correct and about incorrect predictions, "
            "learned from gold items. Evidence allows for them.",
            looks.RATIO,
            1,
            nothing="max_error is not learned, or too few gold items are labelled",
        ),
        *(
            Query(shown(f"credence_label_error_bound_{which}_ratio", _MODEL, by=""), which)
            for which in ("correct", "incorrect")
        ),
        width=8,
    )
