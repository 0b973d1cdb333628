"""The documents of page, API and terminal, made from snapshots."""
