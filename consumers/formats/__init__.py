"""Decoders: bytes of a record to checked messages, or the reason why not."""
