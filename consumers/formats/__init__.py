"""Decoders: from the bytes of a record to validated messages, or to the reason of a dead letter."""
