"""Studies of the method, whose tables are in the docs; each is run by `python -m benchmarks.studies.NAME`."""
