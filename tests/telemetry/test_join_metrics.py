"""Gauges of what waits for unrequested labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from service.telemetry.instruments import PipelineMetrics


def test_what_waits_is_exported_and_what_is_not_known_is_absent() -> None:
    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry, lambda: 0.0)
    delays = {"0.5": 60.0, "0.99": None}
    metrics.set_joins("m", items=7, share=0.25, oldest=3_600.0, delays=delays, dropped=1)
    model = {"model": "m"}
    assert registry.get_sample_value("credence_unrequested_waiting_items", model) == 7
    assert registry.get_sample_value("credence_unrequested_sample_ratio", model) == 0.25
    assert registry.get_sample_value("credence_unrequested_dropped_cohorts", model) == 1
    oldest = "credence_unrequested_oldest_cohort_timestamp_seconds"
    assert registry.get_sample_value(oldest, model) == 3_600
    delay = "credence_unrequested_delay_seconds"
    assert registry.get_sample_value(delay, model | {"quantile": "0.5"}) == 60
    assert registry.get_sample_value(delay, model | {"quantile": "0.99"}) is None
    metrics.set_joins("m", items=0, share=0.25, oldest=None, delays=delays, dropped=1)
    assert registry.get_sample_value(oldest, model) is None
