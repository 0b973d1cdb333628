"""HTTP: status page, API, runbooks, health and metrics."""
