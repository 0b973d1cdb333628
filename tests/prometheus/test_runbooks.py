"""Runbooks, as far as a server can tell that they are right."""

from __future__ import annotations

import re

from committed_alerting import ROOT
from monitoring_servers import StartPrometheus


def test_every_query_of_a_runbook_and_of_the_daily_look_is_understood_by_prometheus(
    start_prometheus: StartPrometheus,
) -> None:
    prometheus = start_prometheus({})
    queries = [
        query
        for path in [*sorted((ROOT / "docs/runbooks").glob("*.md")), ROOT / "docs/operations.md"]
        for block in re.findall(r"```promql\n(.*?)```", path.read_text(), flags=re.DOTALL)
        for query in block.splitlines()
    ]
    assert queries
    for query in queries:
        assert prometheus.query(query) == []
