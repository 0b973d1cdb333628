"""The servers that the tests of monitoring stand on."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import wait_for
from monitoring_servers import (
    StartAlertmanager,
    StartPrometheus,
    WebhookReceiver,
    alerting_to,
    scrape,
)

from service.demo.ports import free_port
from service.domain.errors import EmbeddedServerError


def test_an_alert_goes_from_a_rule_through_alertmanager_to_the_webhook(
    tmp_path: Path,
    start_prometheus: StartPrometheus,
    start_alertmanager: StartAlertmanager,
    webhook: WebhookReceiver,
) -> None:
    alertmanager = start_alertmanager(
        {
            "route": {"receiver": "webhook", "group_wait": "0s"},
            "receivers": [{"name": "webhook", "webhook_configs": [{"url": f"{webhook.url}/hook"}]}],
        }
    )
    rules = tmp_path / "rules.yaml"
    rules.write_text("groups: [{name: g, interval: 1s, rules: [{alert: Down, expr: up == 0}]}]")
    prometheus = start_prometheus(
        {
            "alerting": alerting_to(alertmanager),
            "rule_files": [str(rules)],
            "scrape_configs": [scrape("nobody", [f"127.0.0.1:{free_port()}"], seconds=0.5)],
        }
    )
    wait_for(lambda: webhook.alerts(alertname="Down"), seconds=30, what="the alert at the webhook")
    assert webhook.payloads[0]["path"] == "/hook"
    assert prometheus.value('up{job="nobody"}') == 0
    assert prometheus.query("absent_metric") == []
    assert [alert["status"]["state"] for alert in alertmanager.alerts()] == ["active"]


def test_a_configuration_that_is_wrong_is_told_with_the_servers_own_words(
    start_prometheus: StartPrometheus,
) -> None:
    with pytest.raises(EmbeddedServerError, match="not_a_key"):
        start_prometheus({"not_a_key": 1})
