"""Frozen settings, and the loader that reads them once."""
