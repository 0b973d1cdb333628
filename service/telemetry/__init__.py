"""The metric catalogue, the counters of a process, health and logs."""
