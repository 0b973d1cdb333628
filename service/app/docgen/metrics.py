"""Makes `docs/metrics.md` from the catalogue."""

from __future__ import annotations

from service.serving.prometheus import CATALOGUE

_HEAD = """# Metrics

Made from the catalogue (`service/serving/prometheus.py`) by `credence describe metrics`; do not edit by hand.

Probabilities, shares and accuracies are ratios between 0 and 1, times are seconds since the epoch.
`lower` and `upper` are the ends of the credible interval that the model's `interval` asks for.
Metrics of a model come from the latest snapshot, so every replica that takes snapshots shows them: aggregate
over replicas with `max`, not with `sum`; never average ratios. A scrape computes no estimates.

Of a grouping with more groups than `bounds.metric_groups`, those that alert, the least accurate and the least
known for their traffic have series of their own; group `other` stands for the rest. `/metrics` speaks
OpenMetrics and the classic text format, whichever is asked for.

| metric | type | unit | labels | meaning |
| --- | --- | --- | --- | --- |
"""


def metrics_page() -> str:
    """The page as Markdown."""
    rows = (
        f"| `{spec.name}` | {spec.kind} | {spec.unit} "
        f"| {', '.join(f'`{label}`' for label in spec.labels) or 'none'} "
        f"| {spec.meaning.replace('__other__', '`__other__`')} |"
        for spec in CATALOGUE
    )
    return _HEAD + "\n".join(rows) + "\n"
