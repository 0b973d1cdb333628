"""Credence watches deployed classifiers with few labels."""

__version__ = "0.1.0"
