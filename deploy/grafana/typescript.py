"""Writes the dashboards as TypeScript, so that Grafana's own types can check them.

`python -m deploy.grafana.typescript DIRECTORY` writes one module for each JSON file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = {
    "barchart": "BarChart",
    "bargauge": "BarGauge",
    "heatmap": "Heatmap",
    "stat": "Stat",
    "table": "Table",
    "timeseries": "TimeSeries",
}
DIRECTORY = Path(__file__).parent / "dashboards"
COMPOSABLE = "@grafana/schema/dist/esm/raw/composable"

# JSON holds the values of enumerations, not their names; and all of a panel's own options have defaults.
HEAD = """\
import type * as schema from '@grafana/schema';
import type { PrometheusDataQuery } from '%s/prometheus/dataquery/x/PrometheusDataQuery_types.gen';
%s

type Json<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends Array<infer U> ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Partly<T> = T extends Array<infer U> ? Partly<U>[]
  : T extends object ? { [K in keyof T]?: Partly<T[K]> } : T;
// What Prometheus' annotations have, and the common type does not tell.
type Annotation = schema.AnnotationQuery
  & { expr: string; titleFormat: string; textFormat: string; tagKeys?: string; step: string;
  useValueForTime?: boolean };
// What variables have in Grafana itself, and later versions of this type tell.
// The id of this type is old: today's Grafana writes none, and takes the name instead.
type Variable = Omit<schema.VariableModel, 'id'>
  & { includeAll: boolean; allValue?: string; regex?: string; sort?: number;
  auto: boolean; auto_min: string; auto_count: number };
type Frame = Omit<schema.Dashboard, 'panels' | 'annotations' | 'templating'>;
type Panel = Omit<schema.Panel, 'options' | 'targets' | 'fieldConfig'>;
type Fields = Omit<schema.FieldConfig, 'custom'>;
"""


def declarations(board: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Parts of a dashboard, each with the type that it must have."""
    for annotation in board.pop("annotations")["list"]:
        yield "Json<Annotation>", annotation
    for variable in board.pop("templating")["list"]:
        # The textbox and the data source need none, and Grafana writes none.
        yield "Json<Variable>", {"datasource": None} | variable
    panels = board.pop("panels")
    panels += [inner for row in panels for inner in row.get("panels", ())]
    for panel in panels:
        kind = panel["type"]
        if kind == "row":
            yield "Json<schema.RowPanel>", panel | {"panels": []}
            continue
        yield f"Json<Partly<{kind}.Options>>", panel.pop("options")
        for target in panel.pop("targets"):
            yield "Json<PrometheusDataQuery>", target
        fields = panel.pop("fieldConfig")
        if "custom" in fields["defaults"]:
            yield f"Json<Partly<{kind}.FieldConfig>>", fields["defaults"].pop("custom")
        yield "Json<Fields>", fields["defaults"]
        yield "Json<schema.FieldConfigSource>['overrides']", fields["overrides"]
        yield "Json<Panel>", panel
    yield "Json<Frame>", board


def main() -> None:
    """Write one module for each dashboard."""
    target = Path(sys.argv[1])
    imports = "\n".join(
        f"import type * as {kind} from '{COMPOSABLE}/{kind}/panelcfg/x/{name}PanelCfg_types.gen';"
        for kind, name in KINDS.items()
    )
    for path in sorted(DIRECTORY.glob("*.json")):
        parts = declarations(json.loads(path.read_text(encoding="utf-8")))
        body = "".join(
            f"export const part{number}: {kind} = {json.dumps(part, indent=1)};\n"
            for number, (kind, part) in enumerate(parts)
        )
        (target / f"{path.stem}.ts").write_text(HEAD % (COMPOSABLE, imports) + body, encoding="utf-8")


if __name__ == "__main__":
    main()
