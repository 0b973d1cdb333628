"""Snapshots as Prometheus metrics, JSON API and status page; and the vendor API."""
