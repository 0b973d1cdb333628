"""A configuration from a sample: a profile of its columns, decisions with their reasons, commented YAML."""
