"""The metrics that a process counts itself, health and logs."""
