"""HTTP: health and metrics."""
