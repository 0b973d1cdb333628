"""The composition root: processes, rounds and the command line."""
