"""Grafana dashboards as code: `python -m deploy.grafana` writes `dashboards/*.json`."""
