"""Offline assessment of recorded predictions."""
