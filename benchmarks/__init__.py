"""Measurements of speed and of label efficiency; each is run by `python -m benchmarks.NAME`."""
