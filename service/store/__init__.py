"""Facts in Redis: the only package that knows a key's name."""
