"""What all dashboards have in common: data source, variables, links, and alerts as annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana import looks, promql

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")

FLEET = "credence-fleet"
MODEL = "credence-model"
PIPELINE = "credence-pipeline"

_KEPT = (
    "${datasource:queryparam}&${job:queryparam}&${credence_url:queryparam}&${runbooks_url:queryparam}"
    "&${__url_time_range}"
)
_PAGE = "${credence_url:raw}/"
_TITLES = {FLEET: "All models", MODEL: "One model", PIPELINE: "Pipeline"}


def variable(name: str, label: str, description: str, query: str) -> build.QueryVariable:
    """A variable whose values come from Prometheus, looked up again when the time range changes."""
    return (
        build.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def link_to_model(model_field: str, grouping_field: str = "", group_field: str = "") -> dict[str, object]:
    """A data link from a row of a table to the model's dashboard, at the row's group where it has one."""
    fields = {"model": model_field, "grouping": grouping_field, "group": group_field}
    chosen = "&".join(
        f'var-{name}=${{__data.fields["{field}"]:percentencode}}' for name, field in fields.items() if field
    )
    chosen = chosen if model_field else f"${{model:queryparam}}&{chosen}"
    return {"title": "Show this model", "url": f"/d/{MODEL}?{chosen}&{_KEPT}"}


def link_to_group(group_field: str) -> list[dict[str, object]]:
    """Data links from a row of a table of one model's groups: to the group's rows, and to Credence's page."""
    group = f'${{__data.fields["{group_field}"]:percentencode}}'
    here = f"/d/{MODEL}?${{model:queryparam}}&${{grouping:queryparam}}&var-group={group}&{_KEPT}"
    page = f"{_PAGE}?model=${{model:percentencode}}&grouping=${{grouping:percentencode}}&group={group}"
    return [{"title": "Show this group", "url": here}, {"title": "Credence's page", "url": page}]


def link_to_runbook(alert_field: str) -> dict[str, object]:
    """A data link from an alert's name to what to do about it."""
    name = f'${{__data.fields["{alert_field}"]:percentencode}}'
    return {"title": "Runbook", "url": f"${{runbooks_url:raw}}/{name}"}


def _text_box(name: str, label: str, description: str, default: str) -> build.TextBoxVariable:
    # Links are empty until somebody types into the box, unless its current value is there, too.
    option = model.VariableOption(selected=True, text=default, value=default)
    return (
        build.TextBoxVariable(name)
        .label(label)
        .description(description)
        .default_value(default)
        .current(option)
        .options([option])
    )


class _PrometheusAnnotation(model.AnnotationQuery):
    """Adds what Prometheus' annotations can say and the SDK's type does not know."""

    more: Mapping[str, object] = MappingProxyType({})

    def to_json(self) -> dict[str, object]:
        return super().to_json() | dict(self.more)


class _Annotation(build.AnnotationQuery):
    def __init__(self, name: str, colour: str, expression: str, more: Mapping[str, object]) -> None:
        super().__init__()
        self._internal = _PrometheusAnnotation(
            name=name, datasource=DATASOURCE, enable=True, icon_color=colour, expr=expression
        )
        self._internal.more = more


def _alerts(expression: str) -> _Annotation:
    more = {
        "titleFormat": "{{severity}} {{model}}",
        "textFormat": "Alerts are firing; the table has their names.",
        "tagKeys": "severity",
        "step": "60s",
    }
    # One for a model and severity: one for every alert would hide all lines.
    return _Annotation("Alerts", looks.VERMILLION, f"max by (model, severity) ({expression})", more)


def _changes(expression: str) -> _Annotation:
    more = {
        "titleFormat": "{{group}} became less accurate",
        "textFormat": "$grouping",
        # The series' value is the time, in milliseconds.
        "useValueForTime": True,
        "step": "60s",
    }
    return _Annotation("Changes", looks.PURPLE, expression, more)


def dashboard(
    uid: str,
    title: str,
    description: str,
    variables: Iterable[build.QueryVariable] = (),
    *,
    alerts: str = promql.FIRING,
    changes: str = "",
) -> build.Dashboard:
    """An empty dashboard.

    Args:
        uid: for ever, as links and bookmarks hold it.
        title: of the dashboard.
        description: what it is for.
        variables: more than data source and job.
        alerts: what is shown as annotations.
        changes: likewise, of which the values are times, in milliseconds; none where it is empty.
    """
    board = (
        build.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["credence"])
        .timezone("browser")
        .time("now-6h", "now")
        .refresh("30s")
        .editable()
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(
            build.DatasourceVariable("datasource")
            .label("Data source")
            .description("The Prometheus that scrapes Credence.")
            .type("prometheus")
        )
        .with_variable(
            variable(
                "job",
                "Job",
                "Scrape jobs of Credence's processes.",
                "label_values(credence_build_info, job)",
            )
            .multi(True)
            .include_all(True)
            .all_value(".+")
            .sort(model.VariableSort.ALPHABETICAL_ASC)
            .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
        )
    )
    for more in variables:
        board = board.with_variable(more)
    board = board.with_variable(
        _text_box(
            "credence_url", "Credence's page", "URL of the status page, for links.", "http://127.0.0.1:8400"
        )
    ).with_variable(
        _text_box(
            "runbooks_url",
            "Runbooks",
            "URL of the runbooks; the name of the alert is appended.",
            "https://credence.example/docs/runbooks",
        )
    )
    for other, other_title in _TITLES.items():
        if other != uid:
            board = board.link(
                build.DashboardLink(other_title)
                .type(model.DashboardLinkType.LINK)
                .icon("dashboard")
                .url(f"/d/{other}")
                .include_vars(True)
                .keep_time(True)
            )
    page = f"{_PAGE}?model=${{model:percentencode}}&grouping=${{grouping:percentencode}}"
    for name, url in {
        "Credence's page": page if uid == MODEL else _PAGE,
        "Runbooks": "${runbooks_url:raw}",
    }.items():
        board = board.link(
            build.DashboardLink(name).type(model.DashboardLinkType.LINK).icon("external link").url(url)
        )
    board = board.annotation(_alerts(alerts))
    return board.annotation(_changes(changes)) if changes else board
